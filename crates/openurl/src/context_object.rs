//! An OpenURL as a description: the work that it is about, and what is wanted.

use crate::identifiers::{canonical, read_isbn, read_issn};
use crate::parameters::{Parameters, Refusal};
use crate::service::RequestedService;

/// Maximum number of identifiers, authors, ISSNs and ISBNs that are kept, of each.
const LIST_MAX: usize = 16;

/// The content of an OpenURL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextObject {
    /// The work.
    pub referent: Referent,
    /// The service that the client wants.
    pub service: RequestedService,
    /// The program that has made the link: `rfr_id` without `info:sid/`, or `sid`.
    pub referrer: Option<String>,
}

/// The work that an OpenURL describes. Texts are on one line and at most 4 KiB long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Referent {
    /// Its identifiers as they are in the query.
    pub identifiers: Vec<String>,
    /// Its kind, such as `article`, `bookitem` or `dissertation`.
    pub genre: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The journal or the book in which it is.
    pub container: Option<String>,
    /// Its authors: `Last, First`, or as the query writes them.
    pub authors: Vec<String>,
    /// The last name of the first author.
    pub last_name: Option<String>,
    /// ISSNs with a hyphen.
    pub issns: Vec<String>,
    /// ISBNs without hyphens.
    pub isbns: Vec<String>,
    /// The volume.
    pub volume: Option<String>,
    /// The issue.
    pub issue: Option<String>,
    /// The first page, or the number of an article without pages.
    pub first_page: Option<String>,
    /// The date as written.
    pub date: Option<String>,
}

impl ContextObject {
    /// Reads a query string or a form (`application/x-www-form-urlencoded`).
    ///
    /// # Errors
    ///
    /// It is too long, describes nothing, or describes the work in another way than by keys.
    pub fn parse(encoded: &[u8]) -> Result<Self, Refusal> {
        let parameters = Parameters::read(encoded)?;
        let referent = Referent::read(&parameters);
        let is_empty = referent == Referent::default();
        if is_empty && parameters.first(&["url_ctx_ref", "url_ctx_val"]).is_some() {
            return Err(Refusal::NotByKeys);
        }
        if is_empty {
            return Err(Refusal::Empty);
        }
        let referrer = parameters.first(&["rfr_id", "sid"]);
        let referrer = referrer.map(|name| name.strip_prefix("info:sid/").unwrap_or(name).to_owned());
        Ok(Self { referent, service: RequestedService::read(&parameters), referrer })
    }
}

/// The identifiers of these keys have no prefix.
const UNPREFIXED: [(&str, &str); 4] =
    [("rft.doi", "doi:"), ("rft.pmid", "pmid:"), ("doi", "doi:"), ("pmid", "pmid:")];

impl Referent {
    fn read(parameters: &Parameters) -> Self {
        let first = |keys: &[&str]| parameters.first(keys).map(str::to_owned);
        let numbers = |keys: &[&str], read: fn(&str) -> Option<String>| {
            let values = keys.iter().flat_map(|key| parameters.all(key));
            unique(values.filter_map(read))
        };
        let genre = first(&["rft.genre", "genre"]).map(|genre| genre.to_ascii_lowercase());
        let mut referent = Self {
            identifiers: read_identifiers(parameters),
            genre,
            issns: numbers(&["rft.issn", "rft.eissn", "issn", "eissn"], read_issn),
            isbns: numbers(&["rft.isbn", "isbn"], read_isbn),
            volume: first(&["rft.volume", "volume"]),
            issue: first(&["rft.issue", "issue"]),
            first_page: read_first_page(parameters),
            date: first(&["rft.date", "date"]),
            ..Self::default()
        };
        referent.read_titles(parameters);
        referent.read_authors(parameters);
        referent
    }

    /// `title` is the title of the work, or of the journal or book in which it is: that depends on what else is said.
    fn read_titles(&mut self, parameters: &Parameters) {
        let whole =
            parameters.first(&["rft.jtitle", "rft.btitle", "rft.title", "title", "rft.stitle", "stitle"]);
        let whole = whole.map(str::to_owned);
        if let Some(title) = parameters.first(&["rft.atitle", "atitle"]) {
            (self.title, self.container) = (Some(title.to_owned()), whole);
            return;
        }
        let formats = ["dissertation", "patent", "dc", "book"];
        let format = parameters.first(&["rft_val_fmt"]).unwrap_or_default();
        let has_format = formats.iter().any(|name| format == format!("info:ofi/fmt:kev:mtx:{name}"));
        let is_part = self.volume.is_some() || self.issue.is_some() || self.first_page.is_some();
        let names_the_work = match self.genre.as_deref() {
            Some("book" | "journal" | "conference" | "report" | "document" | "dissertation") => true,
            Some("article" | "bookitem" | "proceeding") => false,
            _ => has_format || !is_part,
        };
        if names_the_work {
            self.title = whole;
        } else {
            self.container = whole;
        }
    }

    fn read_authors(&mut self, parameters: &Parameters) {
        let last = parameters.first(&["rft.aulast", "aulast"]);
        let given =
            parameters.first(&["rft.aufirst", "aufirst", "rft.auinit", "auinit", "rft.auinit1", "auinit1"]);
        let named =
            last.map(|last| given.map_or_else(|| last.to_owned(), |given| format!("{last}, {given}")));
        let others = ["rft.au", "rft.creator", "rft.aucorp", "au", "aucorp"];
        let others = others.iter().flat_map(|key| parameters.all(key)).map(str::to_owned);
        self.authors = unique(named.into_iter().chain(others));
        let of_first = || {
            let first = self.authors.first()?;
            let name = first.split_once(',').map(|(last, _)| last);
            name.or_else(|| first.split_whitespace().last()).map(|name| name.trim().to_owned())
        };
        self.last_name = last.map(str::to_owned).or_else(of_first);
    }

    /// The identifiers to be resolved, in order and without repetition: each in the form that the resolver knows, then as it
    /// is in the query, because a record may have that one. At the end the ISBN of a book and the ISSN of a journal.
    pub fn candidates(&self) -> Vec<String> {
        let given =
            self.identifiers.iter().flat_map(|given| [canonical(given), Some(given.clone())]).flatten();
        let is_part = self.container.is_some() || self.genre.as_deref() == Some("bookitem");
        let isbns = if is_part { &[][..] } else { &self.isbns };
        let issns = if self.genre.as_deref() == Some("journal") { &self.issns[..] } else { &[] };
        let isbns = isbns.iter().map(|isbn| format!("urn:isbn:{isbn}"));
        let issns = issns.iter().map(|issn| format!("urn:issn:{issn}"));
        let mut candidates: Vec<String> = Vec::new();
        for candidate in given.chain(isbns).chain(issns) {
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        candidates
    }

    /// The year of the date.
    pub fn year(&self) -> Option<u16> {
        let (year, rest) = self.date.as_deref()?.split_at_checked(4)?;
        let is_year = year.bytes().all(|byte| byte.is_ascii_digit())
            && !rest.starts_with(|c: char| c.is_ascii_digit() && rest.len() != 4);
        if is_year { year.parse().ok() } else { None }
    }
}

fn read_identifiers(parameters: &Parameters) -> Vec<String> {
    let given = ["rft_id", "id"].into_iter().flat_map(|key| parameters.all(key)).map(str::to_owned);
    let unprefixed = UNPREFIXED.iter().flat_map(|(key, prefix)| {
        parameters.all(key).map(move |value| match canonical(value) {
            Some(canonical) => canonical,
            None => format!("{prefix}{value}"),
        })
    });
    unique(given.chain(unprefixed))
}

/// The first page, the start of a range of pages, or the number of an article.
fn read_first_page(parameters: &Parameters) -> Option<String> {
    let page = parameters.first(&["rft.spage", "spage"]).map(str::to_owned);
    let of_range = || {
        let pages = parameters.first(&["rft.pages", "pages"])?;
        let start = pages.split(['-', '\u{2013}', ',']).next().unwrap_or_default().trim();
        if start.is_empty() { None } else { Some(start.to_owned()) }
    };
    page.or_else(of_range).or_else(|| parameters.first(&["rft.artnum", "artnum"]).map(str::to_owned))
}

/// The values without repetition, up to the limit.
fn unique(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for value in values {
        if kept.len() == LIST_MAX {
            break;
        }
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    kept
}
