// Harvests each base URL by the npm package oai-pmh and prints the records as a line of JSON.
//
// The first argument is the folder in which the package is installed.
import { createRequire } from 'node:module'

const [folder, ...baseUrls] = process.argv.slice(2)
const { OaiPmh } = createRequire(`${folder}/`)('oai-pmh')

// The text of an element, which is an object if it has attributes, and an array if it is repeated.
function textOf (element) {
  const first = Array.isArray(element) ? element[0] : element
  return (typeof first === 'object' ? first._ : first) ?? null
}

for (const baseUrl of baseUrls) {
  const records = []
  let error = null
  try {
    for await (const { header, metadata } of new OaiPmh(baseUrl).listRecords({ metadataPrefix: 'oai_dc' })) {
      const dc = metadata['oai_dc:dc']
      records.push([header.identifier, header.datestamp, textOf(dc['dc:title']), textOf(dc['dc:description'])])
    }
  } catch (exception) {
    error = String(exception)
  }
  console.log(JSON.stringify({ records, error }))
}
