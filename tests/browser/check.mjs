// Opens pages of oaimend in headless Chromium, and checks them as people, keyboards, screen readers and reference
// managers meet them.
//
// usage: node check.mjs FILE
//
// FILE is JSON: {"base": URL, "screenshots": FOLDER, "pages": [PAGE, ...]}. A PAGE has a `name` and a `path`, and
// may have:
//   "follow"     the page is the first link of `path` whose target begins with this text
//   "base"       the URL of its server, in place of the one above
//   "status"     the status of the response; 200 by default
//   "links_to"   paths that the page must link to
//   "metadata"   the meta tags that a reference manager must find: {"highwirePress": {...}, "dublinCore": {...}}, or the
//                works of a page of results: {"coins": {"length": 2, "0": {...}}}
//   "is_xml"     the response is no page: the browser must show it, and run no script in it
//
// Each page is opened at two widths and in two colour schemes. Prints a line for each fault, and exits 1 if there is one.
// The screenshots are FOLDER/NAME-WIDTH-SCHEME.png.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const htmlMetadata = require("html-metadata");
const cheerio = require("cheerio");

const SIZES = [{ width: 1280, height: 900 }, { width: 390, height: 844 }];
const SCHEMES = ["light", "dark"];
// WCAG 2.2, levels A and AA.
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
// The screenshot of a longer page ends here.
const SCREENSHOT_PIXELS_MAX = 3000;
// The first elements that a keyboard reaches.
const TABS = 12;

const check = JSON.parse(readFileSync(process.argv[2], "utf8"));
const faults = [];
let checks = 0;

function expect(page, holds, fault) {
  checks += 1;
  if (!holds) faults.push(`${page}: ${fault}`);
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
try {
  mkdirSync(check.screenshots, { recursive: true });
  for (const page of check.pages) {
    if (page.follow) page.path = await firstLink(page);
    for (const viewport of SIZES) {
      for (const colorScheme of SCHEMES) await open(page, viewport, colorScheme);
    }
    if (!page.is_xml) await readMetadata(page);
  }
} finally {
  await browser.close();
}
for (const fault of faults) console.log(fault);
console.log(`${checks - faults.length} passed, ${faults.length} failed`);
process.exitCode = faults.length ? 1 : 0;

// The target of the first link that a page is to follow.
async function firstLink(described) {
  const response = await fetch((described.base ?? check.base) + described.path);
  const link = cheerio.load(await response.text())(`a[href^="${described.follow}"]`).attr("href");
  expect(described.name, link !== undefined, `${described.path} has no link to ${described.follow}`);
  return link ?? described.path;
}

// Opens a page as a person does.
async function open(described, viewport, colorScheme) {
  const title = `${described.name} at ${viewport.width} px, ${colorScheme}`;
  const context = await browser.newContext({ viewport, colorScheme });
  const page = await context.newPage();
  const messages = [];
  const url = (described.base ?? check.base) + described.path;
  // Chromium requests an icon by itself, and says that the status of a page is not 200.
  const isExpected = (source) => source === url || source.endsWith("/favicon.ico");
  page.on("console", (message) => {
    const isFault = ["error", "warning"].includes(message.type());
    if (isFault && !isExpected(message.location().url)) messages.push(message.text());
  });
  page.on("pageerror", (error) => messages.push(String(error)));
  page.on("dialog", (dialog) => { messages.push(`a script opened a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => {
    if (!request.url().startsWith(described.base ?? check.base) && !request.url().startsWith("data:")) {
      messages.push(`a request to another server: ${request.url()}`);
    }
  });
  page.on("requestfailed", (request) => messages.push(`not loaded: ${request.url()}`));
  const response = await page.goto(url, { waitUntil: "load" });
  expect(title, response.status() === (described.status ?? 200), `the status is ${response.status()}`);
  const file = `${described.name}-${viewport.width}-${colorScheme}.png`;
  const ran = await page.evaluate(() => globalThis.hasRun === true);
  expect(title, !ran, "a script of a record ran");
  if (described.is_xml) {
    // The policy blocks the script of the record, and Chromium says so in a message.
    await context.close();
    return;
  }
  const height = Math.min(await page.evaluate(() => document.documentElement.scrollHeight), SCREENSHOT_PIXELS_MAX);
  const clip = { x: 0, y: 0, width: viewport.width, height };
  await page.screenshot({ path: join(check.screenshots, file), fullPage: true, clip });
  const overflow = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
  expect(title, overflow <= 0, `the page is ${overflow} px wider than the window`);
  await page.evaluate(axe);
  const found = await page.evaluate((tags) => globalThis.axe.run({ runOnly: tags }), AXE_TAGS);
  for (const violation of found.violations) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `${node.html} ${node.failureSummary}`);
    expect(title, false, `axe: ${violation.id}: ${violation.help}: ${nodes.join(" | ")}`);
  }
  expect(title, found.passes.length > 5, "axe found nothing to check");
  await checkKeyboard(page, title);
  for (const path of described.links_to ?? []) {
    const count = await page.locator(`a[href="${path}"]`).count();
    expect(title, count > 0, `no link to ${path}`);
  }
  const structure = await page.evaluate(() => ({
    headings: document.querySelectorAll("h1").length,
    mains: document.querySelectorAll("main").length,
    language: document.documentElement.lang,
    scripts: document.querySelectorAll('script:not([type="application/ld+json"])').length,
    handlers: [...document.querySelectorAll("*")].filter((element) =>
      element.getAttributeNames().some((name) => name.startsWith("on"))).length,
    targets: [...document.querySelectorAll("a[href]")].map((link) => link.href).filter((target) =>
      !/^(https?|mailto):/.test(target)),
  }));
  expect(title, structure.headings === 1, `${structure.headings} headings of the first level`);
  expect(title, structure.mains === 1 && structure.language === "en", "no main part, or no language");
  expect(title, structure.scripts === 0 && structure.handlers === 0, "the page contains a script");
  expect(title, structure.targets.length === 0, `links to ${structure.targets}`);
  for (const message of messages) expect(title, false, message);
  await context.close();
}

// The first element that a keyboard reaches skips to the content, and each focused element has a visible outline.
async function checkKeyboard(page, title) {
  for (let number = 0; number < TABS; number += 1) {
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => {
      const element = document.activeElement;
      const style = getComputedStyle(element);
      return { tag: element.tagName, target: element.getAttribute("href"), outline: parseFloat(style.outlineWidth),
        html: element.outerHTML.slice(0, 120) };
    });
    if (focused.tag === "BODY") return;
    if (number === 0) expect(title, focused.target === "#main", `the first Tab reaches ${focused.html}`);
    expect(title, focused.outline > 0, `no outline of the focused ${focused.html}`);
  }
}

// Reads a page without running it, as search engines and reference managers do.
async function readMetadata(described) {
  const response = await fetch((described.base ?? check.base) + described.path, { headers: { "Sec-Fetch-Dest": "document" } });
  const document = cheerio.load(await response.text());
  for (const [kind, expected] of Object.entries(described.metadata ?? {})) {
    const read = await htmlMetadata.metadataFunctions[kind](document);
    // COinS are a list of works, whose identifiers contain the port.
    const found = kind === "coins" ? read.map(({ rft }) => rft) : read;
    for (const [name, value] of Object.entries(expected)) {
      const [wanted, shown] = [value, found[name]].map((each) => JSON.stringify(each));
      expect(described.name, isDeepStrictEqual(found[name], value), `${kind}.${name} is ${shown}, expected ${wanted}`);
    }
  }
}
