//! PDFs for the tests of full texts, whole and hostile ones (ISO 32000-1).

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write as _;

/// The objects of a PDF. The first one is the catalog.
#[derive(Clone, Debug, Default)]
struct Objects {
    objects: Vec<Vec<u8>>,
    /// Further entries of the trailer.
    trailer: String,
}

impl Objects {
    fn add(&mut self, object: impl Into<Vec<u8>>) -> usize {
        self.objects.push(object.into());
        self.objects.len()
    }

    fn add_stream(&mut self, entries: &str, content: &[u8]) -> usize {
        let mut object = format!("<< {entries} /Length {} >>\nstream\n", content.len()).into_bytes();
        object.extend(content);
        object.extend(b"\nendstream");
        self.add(object)
    }

    fn write(&self) -> Vec<u8> {
        let (mut pdf, mut offsets) = (b"%PDF-1.4\n".to_vec(), Vec::new());
        for (at, object) in self.objects.iter().enumerate() {
            offsets.push(pdf.len());
            pdf.extend(format!("{} 0 obj\n", at + 1).into_bytes());
            pdf.extend(object);
            pdf.extend(b"\nendobj\n");
        }
        let start = pdf.len();
        pdf.extend(format!("xref\n0 {}\n0000000000 65535 f \n", offsets.len() + 1).into_bytes());
        for offset in &offsets {
            pdf.extend(format!("{offset:010} 00000 n \n").into_bytes());
        }
        let (size, trailer) = (offsets.len() + 1, &self.trailer);
        let end = format!("trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\nstartxref\n{start}\n%%EOF\n");
        pdf.extend(end.into_bytes());
        pdf
    }

    /// A document of one page with this content.
    fn of_page(entries: &str, content: &[u8]) -> Self {
        let mut objects = Self::default();
        objects.add("<< /Type /Catalog /Pages 2 0 R >>");
        objects.add("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
        objects.add(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R \
             /Resources << /Font << /F1 4 0 R >> /XObject << /X0 6 0 R >> >> >>",
        );
        objects.add("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>");
        objects.add_stream(entries, content);
        objects
    }
}

/// The operators that show lines of ASCII, one below the other.
fn shown(lines: &[&str]) -> Vec<u8> {
    let mut content = "BT /F1 8 Tf 12 TL 20 770 Td\n".to_owned();
    for line in lines {
        let escaped = line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
        content.push_str(&format!("({escaped}) Tj T*\n"));
    }
    content.push_str("ET");
    content.into_bytes()
}

fn deflated(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).and_then(|()| encoder.finish()).expect("memory")
}

/// A PDF of one page with these lines of ASCII.
pub fn pdf(lines: &[&str]) -> Vec<u8> {
    Objects::of_page("", &shown(lines)).write()
}

/// A PDF that says it is encrypted with a password that nobody knows.
pub fn encrypted(lines: &[&str]) -> Vec<u8> {
    let mut objects = Objects::of_page("", &shown(lines));
    let key = "5a".repeat(32);
    let number = objects.add(format!("<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -44 >>"));
    objects.trailer = format!("/Encrypt {number} 0 R /ID [<00> <00>]");
    objects.write()
}

/// A PDF whose page is a deflated stream of this many MiB of blanks, before the lines.
pub fn bomb(mebibytes: usize, lines: &[&str]) -> Vec<u8> {
    let mut content = vec![b' '; mebibytes << 20];
    content.extend(shown(lines));
    Objects::of_page("/Filter /FlateDecode", &deflated(&content)).write()
}

/// A PDF whose content is deflated twice, so that a few KiB become this many MiB of blanks.
pub fn double_bomb(mebibytes: usize) -> Vec<u8> {
    let content = deflated(&deflated(&vec![b' '; mebibytes << 20]));
    Objects::of_page("/Filter [/FlateDecode /FlateDecode]", &content).write()
}

/// A PDF with an array that is nested this deep.
pub fn nested(depth: usize) -> Vec<u8> {
    let mut objects = Objects::of_page("", b"");
    let array = ["[".repeat(depth), "]".repeat(depth)].concat();
    objects.objects[2] =
        format!("<< /Type /Page /Parent 2 0 R /MediaBox {array} /Contents 5 0 R /Resources << >> >>")
            .into_bytes();
    objects.write()
}

/// A PDF whose page tree contains itself, and says that it has two billion pages.
pub fn endless_pages() -> Vec<u8> {
    let mut objects = Objects::of_page("", b"");
    objects.objects[1] = b"<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 2000000000 >>".to_vec();
    objects.write()
}

/// A PDF whose page shows a form ten times that shows the next one ten times, `depth` times. The last one shows a line.
pub fn nested_forms(depth: usize) -> Vec<u8> {
    let mut objects = Objects::of_page("", &b"/X0 Do ".repeat(10));
    for at in 0..depth {
        let next = objects.objects.len() + 2;
        let resources = format!("/Resources << /Font << /F1 4 0 R >> /XObject << /X0 {next} 0 R >> >>");
        let content =
            if at + 1 == depth { shown(&["a line that is repeated"]) } else { b"/X0 Do ".repeat(10) };
        objects
            .add_stream(&format!("/Type /XObject /Subtype /Form /BBox [0 0 612 792] {resources}"), &content);
    }
    objects.write()
}

/// A PDF whose page is an image of this many pixels in each direction, and whose content is as long.
pub fn huge_image(pixels: u32) -> Vec<u8> {
    let mut objects = Objects::of_page("", b"/X0 Do");
    objects.add_stream(
        &format!(
            "/Type /XObject /Subtype /Image /Width {pixels} /Height {pixels} /BitsPerComponent 16 \
             /ColorSpace /DeviceRGB /Filter /FlateDecode"
        ),
        &deflated(&vec![0; 1 << 20]),
    );
    objects.write()
}
