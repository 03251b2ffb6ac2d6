//! A request to the API, as its head says. Pure: no I/O.

use super::page::{ApiPageRequest, ResumedPage};
use crate::serve::problem::problem;
use crate::serve::response::Response;
use crate::serve::routes::PUBLIC;
use http::HeaderMap;
use oaimend_api::{
    FormatsParameters, LIMIT_DEFAULT, ListCursor, ListPosition, NoParameters, Operation, ParameterFault,
    Parameters, RecordParameters, RecordsParameters, RepositoriesParameters, SearchParameters,
    SetsParameters, open_api,
};
use oaimend_html::fingerprint;
use oaimend_oai::{Request, Verb};
use oaimend_store::{TokenKey, TokenUse};
use percent_encoding::percent_decode_str;

/// A request to the API.
pub(crate) enum ApiRequest {
    /// One that no repository answers.
    Own(Box<OwnRequest>),
    /// One that a repository answers.
    Read(Box<ApiRead>),
}

/// A request to the API that no repository answers.
pub(crate) enum OwnRequest {
    /// One that needs nothing but this response.
    Response(Response),
    /// One for the repositories: their maximum number, and the id after which they begin.
    Repositories { limit: usize, after: Option<String> },
    /// A search: its parameters, and the number of found records before its page.
    Search { parameters: SearchParameters, offset: usize },
}

/// A request that a repository answers.
pub(crate) struct ApiRead {
    /// The id of the repository.
    pub(crate) repository: String,
    pub(crate) request: Request,
    /// The JSON document that the response becomes.
    pub(crate) page: ApiPageRequest,
}

/// Whether a request target is for the API.
pub(crate) fn is_api(target: &[u8]) -> bool {
    target.starts_with(Operation::FOLDER.as_bytes())
}

impl From<ParameterFault> for ApiRequest {
    fn from(fault: ParameterFault) -> Self {
        refused(&fault.to_string())
    }
}

impl ApiRequest {
    /// Reads a request whose target [`is_api`]. `key` signs cursors.
    pub(crate) fn read(method: &str, target: &[u8], headers: &HeaderMap, key: &TokenKey) -> Self {
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        let path = parts.next().map(String::from_utf8_lossy).unwrap_or_default();
        let query = parts.next().unwrap_or_default();
        let Some(found) = PUBLIC.find("GET", &path) else {
            let text = format!("the API has no such path; see {}", Operation::OpenApi.path());
            return response(problem(404, &text));
        };
        if !found.route.methods.contains(&method) {
            let page = problem(405, "the API is read by GET or HEAD");
            return response(page.with("Allow", found.route.methods.join(", ")));
        }
        let operation = Operation::ALL.iter().copied().find(|operation| operation.path() == path);
        let reading = Reading { query, headers, key };
        let read = match operation.unwrap_or(Operation::Repository) {
            Operation::OpenApi => reading.open_api(),
            Operation::Repositories => reading.repositories(),
            Operation::Repository => reading.repository(found.id()),
            Operation::Records => reading.records(),
            Operation::Record => reading.record(),
            Operation::Sets => reading.sets(),
            Operation::Formats => reading.formats(),
            Operation::Search => reading.search(),
        };
        read.unwrap_or_else(|refusal| refusal)
    }
}

fn refused(text: &str) -> ApiRequest {
    response(problem(400, text))
}

fn response(page: Response) -> ApiRequest {
    ApiRequest::Own(Box::new(OwnRequest::Response(page)))
}

/// The parts of a request from which it is read.
struct Reading<'r> {
    query: &'r [u8],
    headers: &'r HeaderMap,
    key: &'r TokenKey,
}

/// The request, or the one that refuses it.
type Read = Result<ApiRequest, ApiRequest>;

impl Reading<'_> {
    fn open_api(&self) -> Read {
        NoParameters::read(self.query)?;
        let text = open_api();
        let version = fingerprint([text.as_bytes()]);
        Ok(response(ApiPageRequest::versioned(text.as_bytes().to_vec(), &version, self.headers)))
    }

    fn repositories(&self) -> Read {
        let parameters = RepositoriesParameters::read(self.query)?;
        let list = ListCursor::digest_of(&Operation::Repositories.name());
        let after = match self.position(parameters.cursor.as_deref(), list)? {
            Some(ListPosition::After(id)) => Some(id),
            Some(_) => return Err(foreign_cursor()),
            None => None,
        };
        let limit = parameters.limit.unwrap_or(LIMIT_DEFAULT);
        Ok(ApiRequest::Own(Box::new(OwnRequest::Repositories { limit, after })))
    }

    fn repository(&self, id: &str) -> Read {
        NoParameters::read(self.query)?;
        let id = percent_decode_str(id).decode_utf8().map_err(|_| unknown_repository())?;
        self.reads(Operation::Repository, &id, Request::identify())
    }

    fn formats(&self) -> Read {
        let parameters = FormatsParameters::read(self.query)?;
        let request = Request::list_metadata_formats(parameters.identifier.as_deref());
        self.reads(Operation::Formats, &parameters.repository, request)
    }

    fn record(&self) -> Read {
        let parameters = RecordParameters::read(self.query)?;
        let request = parameters.request();
        let read = self.reads(Operation::Record, &parameters.repository, request)?;
        Ok(read.with(|page| page.fields = parameters.fields))
    }

    fn sets(&self) -> Read {
        let SetsParameters { repository, limit, cursor } = SetsParameters::read(self.query)?;
        let list = ListCursor::digest_of(&(Operation::Sets.name(), &repository));
        let resumed = self.resumed(cursor.as_deref(), list)?;
        let request = resumed.apply_to(Request::list_sets());
        let read = self.reads(Operation::Sets, &repository, request)?;
        Ok(read.with(|page| {
            (page.list, page.resumed) = (list, resumed);
            page.limit = limit.unwrap_or(LIMIT_DEFAULT);
        }))
    }

    fn records(&self) -> Read {
        let parameters = RecordsParameters::read(self.query)?;
        let request = parameters.request().map_err(|error| refused(&error.text))?;
        // The request has the parameters that select records. Tokens of records and of headers differ.
        let list =
            ListCursor::digest_of(&(Operation::Records.name(), &parameters.repository, request.query()));
        let resumed = self.resumed(parameters.cursor.as_deref(), list)?;
        let request = resumed.apply_to(request);
        let read = self.reads(Operation::Records, &parameters.repository, request)?;
        Ok(read.with(|page| {
            (page.list, page.resumed) = (list, resumed);
            page.limit = parameters.limit.unwrap_or(LIMIT_DEFAULT);
            page.fields = parameters.fields;
        }))
    }

    fn search(&self) -> Read {
        let parameters = SearchParameters::read(self.query)?;
        let offset = match self.position(parameters.cursor.as_deref(), search_list(&parameters))? {
            Some(ListPosition::Offset(offset)) => offset,
            Some(_) => return Err(foreign_cursor()),
            None => 0,
        };
        Ok(ApiRequest::Own(Box::new(OwnRequest::Search { parameters, offset })))
    }

    /// A request that a repository answers.
    fn reads(&self, operation: Operation, repository: &str, request: Request) -> Read {
        // The checks of a request of a harvester.
        let request = Request::parse(request.query().as_bytes()).map_err(|error| refused(&error.text))?;
        Ok(ApiRequest::Read(Box::new(ApiRead {
            repository: repository.to_owned(),
            request,
            page: ApiPageRequest::new(operation, repository, self.headers.clone(), self.key.clone()),
        })))
    }

    /// The page of OAI-PMH that a cursor of this list continues.
    fn resumed(&self, cursor: Option<&str>, list: u64) -> Result<ResumedPage, ApiRequest> {
        match self.position(cursor, list)? {
            Some(ListPosition::Page { token, delivered, digest }) => {
                Ok(ResumedPage { token, delivered, digest })
            }
            Some(_) => Err(foreign_cursor()),
            None => Ok(ResumedPage::default()),
        }
    }

    fn position(&self, cursor: Option<&str>, list: u64) -> Result<Option<ListPosition>, ApiRequest> {
        let Some(cursor) = cursor else { return Ok(None) };
        let read: ListCursor = self.key.unseal(TokenUse::Api, cursor).ok_or_else(foreign_cursor)?;
        if read.list == list { Ok(Some(read.position)) } else { Err(foreign_cursor()) }
    }
}

impl ApiRequest {
    fn with(mut self, change: impl FnOnce(&mut ApiPageRequest)) -> Self {
        if let Self::Read(read) = &mut self {
            change(&mut read.page);
        }
        self
    }
}

/// The digest of the list of a search.
pub(super) fn search_list(parameters: &SearchParameters) -> u64 {
    let SearchParameters { q, repository, r#type, year, language, access, sort, limit: _, cursor: _ } =
        parameters;
    ListCursor::digest_of(&(Operation::Search.name(), q, repository, r#type, year, language, access, sort))
}

fn foreign_cursor() -> ApiRequest {
    response(problem(
        404,
        "this list has no page with this cursor; send it with the parameters of the page that contained it, or begin the list again",
    ))
}

fn unknown_repository() -> ApiRequest {
    response(unknown_repository_problem())
}

/// The response to a request for a repository that this server does not have.
pub(crate) fn unknown_repository_problem() -> Response {
    problem(
        404,
        &format!("this server has no such repository; {} lists them", Operation::Repositories.path()),
    )
}

impl ResumedPage {
    /// The request for this page of a list.
    fn apply_to(&self, first: Request) -> Request {
        match &self.token {
            Some(token) if first.verb() != Verb::Identify => first.with_token(token.clone()),
            _ => first,
        }
    }
}
