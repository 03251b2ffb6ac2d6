//! The response of a member: opened up to its first item, then passed on piece by piece.

use crate::header_editor::{PageEditor, PageEdits};
use oaimend_oai::datestamp::to_secs;
use oaimend_oai::{ErrorCode, UnixSecs};
use oaimend_repository::{
    AnsweredBy, Event, EventStream, Failure, ListAge, Reason, Repository, RepositoryRequest, ResponseSummary,
};

/// A response of a member, as far as it is known when its first item or its end has arrived.
pub(crate) enum Opened {
    /// It has items.
    Items(Box<MemberPage>),
    /// It has ended without one.
    Nothing(Box<Nothing>),
    Failed(Failure),
}

/// A response without items.
#[derive(Debug, Default)]
pub(crate) struct Nothing {
    /// The code of the error, and its text.
    pub(crate) error: Option<(ErrorCode, String)>,
    /// The token, if the list continues nevertheless.
    pub(crate) token: Option<String>,
    /// The state of the repository that it shows.
    pub(crate) state_secs: Option<UnixSecs>,
}

impl Nothing {
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        self.error.as_ref().map(|(code, _)| *code)
    }
}

/// A response with items.
pub(crate) struct MemberPage {
    stream: EventStream,
    pub(crate) editor: PageEditor,
    pub(crate) answered_by: AnsweredBy,
    age: Option<ListAge>,
}

/// The next part of a response.
pub(crate) enum Part {
    Output(Vec<u8>),
    End(Box<ResponseSummary>),
}

impl MemberPage {
    /// Requests a page, and reads it up to its first item.
    pub(crate) async fn open(
        repository: &dyn Repository,
        request: RepositoryRequest,
        edits: PageEdits,
    ) -> Opened {
        let stream = repository.answer(request);
        let editor = PageEditor::new(edits);
        let mut page = Self { stream, editor, answered_by: AnsweredBy::Source(200), age: None };
        loop {
            match page.stream.next().await {
                Some(Event::End(summary)) => return Opened::Nothing(Box::new(page.nothing(&summary))),
                Some(Event::Failed(failure, _)) => return Opened::Failed(failure),
                Some(other) => {
                    if let Err(failure) = page.take(other) {
                        return Opened::Failed(failure);
                    }
                    if page.editor.items() > 0 {
                        return Opened::Items(Box::new(page));
                    }
                }
                None => return Opened::Failed(stopped()),
            }
        }
    }

    fn nothing(&self, summary: &ResponseSummary) -> Nothing {
        Nothing {
            error: self.editor.error(),
            token: summary.page.token.clone(),
            state_secs: self.state_secs(summary),
        }
    }

    fn take(&mut self, event: Event) -> Result<(), Failure> {
        match event {
            Event::Head(head) => (self.answered_by, self.age) = (head.answered_by, head.list),
            Event::Body(piece) => self.editor.push(&piece)?,
            Event::Records(_) | Event::Quarantined(_) | Event::End(_) | Event::Failed(..) => {}
        }
        Ok(())
    }

    /// The next part. Output that is there already comes first.
    ///
    /// # Errors
    ///
    /// The response ends early.
    pub(crate) async fn next(&mut self) -> Result<Part, Failure> {
        loop {
            let output = self.editor.take_output();
            if !output.is_empty() {
                return Ok(Part::Output(output));
            }
            match self.stream.next().await {
                Some(Event::End(summary)) => return Ok(Part::End(summary)),
                Some(Event::Failed(failure, _)) => return Err(failure),
                Some(other) => self.take(other)?,
                None => return Err(stopped()),
            }
        }
    }

    /// Awaits another future, and receives the response meanwhile.
    pub(crate) async fn beside<T>(&mut self, awaited: impl Future<Output = T>) -> T {
        self.stream.beside(awaited).await
    }

    /// The state of the repository that the response shows: all changes before it are in its list.
    pub(crate) fn state_secs(&self, summary: &ResponseSummary) -> Option<UnixSecs> {
        let date_secs = || to_secs(summary.page.response_date.as_deref()?);
        self.age.map(|age| age.state_secs).or_else(date_secs)
    }
}

/// A whole response.
///
/// # Errors
///
/// The member fails, answers with an error, or with more bytes than this.
pub(crate) async fn whole_response(
    repository: &dyn Repository,
    request: RepositoryRequest,
    bytes_max: usize,
) -> Result<String, Failure> {
    let verb = request.request.verb().name();
    let mut stream = repository.answer(request);
    let mut body = Vec::new();
    loop {
        match stream.next().await {
            Some(Event::Body(piece)) if body.len() + piece.len() <= bytes_max => {
                body.extend_from_slice(&piece)
            }
            Some(Event::Body(_)) => {
                let details = format!("its response to {verb} is longer than {bytes_max} bytes");
                return Err(Failure::new(Reason::TooLarge, details));
            }
            Some(Event::End(summary)) => {
                return match summary.page.error {
                    Some(code) => {
                        let details = format!("it answers {verb} with the error {}", code.name());
                        Err(Failure::new(Reason::Status, details))
                    }
                    None => Ok(String::from_utf8_lossy(&body).into_owned()),
                };
            }
            Some(Event::Failed(failure, _)) => return Err(failure),
            Some(Event::Head(_) | Event::Records(_) | Event::Quarantined(_)) => {}
            None => return Err(stopped()),
        }
    }
}

fn stopped() -> Failure {
    Failure::new(Reason::Incomplete, "the session with the repository stopped")
}
