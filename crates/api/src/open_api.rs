//! The OpenAPI document, made from the types of parameters and documents.

use crate::documents::{
    FormatDocument, FormatList, RecordDocument, RecordPage, RepositoryDocument, RepositoryList,
    RepositorySummary, SearchHitDocument, SearchPage, SetDocument, SetPage,
};
use crate::operation::Operation;
use crate::parameters::{
    FormatsParameters, RecordParameters, RecordsParameters, RepositoriesParameters, SearchParameters,
    SetsParameters,
};
use crate::problem::Problem;
use crate::schemas;
use std::sync::LazyLock;
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder,
};
use utoipa::openapi::schema::{ComponentsBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder};
use utoipa::{IntoParams, PartialSchema, ToSchema};

const URI_TOO_LONG: u16 = 414;
/// The statuses of refusals and failures, with their descriptions.
const PROBLEMS: &[(u16, &str)] = &[
    (400, "A parameter is unknown, repeated or not legal; the detail says which"),
    (
        404,
        "The repository, the record, the format or the page with this cursor does not exist, or the server has no search",
    ),
    (405, "The method is neither GET nor HEAD; the header Allow names both"),
    (409, "The source has changed the list while it was read; begin it again"),
    (410, "The cursor has expired; begin the list again without it"),
    (URI_TOO_LONG, "The URL is too long"),
    (
        502,
        "The source failed, and a retry is useless until a person removes the cause; or the page is too long for this API",
    ),
    (503, "The source failed, or a limit of this server is reached; retry after Retry-After seconds"),
    (504, "The source did not respond in time, and a retry is useless"),
];

/// The OpenAPI document in JSON. It is the same on every server, because its URLs are relative.
pub fn open_api() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
        let document = serde_json::to_string_pretty(&build()).expect("the document is JSON");
        format!("{document}\n")
    });
    &DOCUMENT
}

fn build() -> utoipa::openapi::OpenApi {
    let paths = Operation::ALL.iter().fold(PathsBuilder::new(), |paths, operation| {
        paths.path(operation.path(), PathItem::new(HttpMethod::Get, describe(*operation)))
    });
    let components = ComponentsBuilder::new()
        .schema_from::<Problem>()
        .schema_from::<RepositoryList>()
        .schema_from::<RepositorySummary>()
        .schema_from::<RepositoryDocument>()
        .schema_from::<RecordPage<'_>>()
        .schema_from::<RecordDocument<'_>>()
        .schema_from::<SetPage>()
        .schema_from::<SetDocument>()
        .schema_from::<FormatList>()
        .schema_from::<FormatDocument>()
        .schema_from::<SearchPage>()
        .schema_from::<SearchHitDocument>();
    let info = InfoBuilder::new().title("oaimend").version("1").description(Some(
        "Records of OAI-PMH repositories as JSON: live, mirrored, local, views and federations.",
    ));
    OpenApiBuilder::new().info(info.build()).paths(paths).components(Some(components.build())).build()
}

fn describe(operation: Operation) -> OperationBuilder {
    let described = OperationBuilder::new()
        .operation_id(Some(operation.name()))
        .tag("oaimend")
        .summary(Some(operation.summary()));
    let described = match operation {
        Operation::OpenApi => {
            let object = Schema::from(ObjectBuilder::new().schema_type(Type::Object).build());
            returns(described, RefOr::T(object))
        }
        Operation::Repositories => list::<RepositoriesParameters, RepositoryList>(described),
        Operation::Repository => {
            let id = ParameterBuilder::new()
                .name("id")
                .parameter_in(ParameterIn::Path)
                .required(Required::True)
                .description(Some("The id of the repository, percent-encoded."))
                .schema(Some(schemas::RepositoryId::schema()));
            returns(described.parameter(id), reference::<RepositoryDocument>())
        }
        Operation::Records => list::<RecordsParameters, RecordPage<'_>>(described),
        Operation::Record => list::<RecordParameters, RecordDocument<'_>>(described),
        Operation::Sets => list::<SetsParameters, SetPage>(described),
        Operation::Formats => list::<FormatsParameters, FormatList>(described),
        Operation::Search => list::<SearchParameters, SearchPage>(described),
    };
    let described = if operation == Operation::Records {
        described
    } else {
        let known = ResponseBuilder::new().description("The document has the ETag in If-None-Match");
        described.response("304", known)
    };
    PROBLEMS.iter().fold(described, |described, (status, text)| {
        let content = ContentBuilder::new().schema(Some(reference::<Problem>())).build();
        let response = ResponseBuilder::new().description(*text).content("application/problem+json", content);
        // A connection refuses such a URL before it is known to be one of the API.
        let response = if *status == URI_TOO_LONG {
            let text = Schema::from(ObjectBuilder::new().schema_type(Type::String).build());
            response.content("text/plain", ContentBuilder::new().schema(Some(RefOr::T(text))).build())
        } else {
            response
        };
        described.response(status.to_string(), response)
    })
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    RefOr::Ref(Ref::from_schema_name(T::name()))
}

fn list<P: IntoParams, T: ToSchema>(described: OperationBuilder) -> OperationBuilder {
    let parameters = P::into_params(|| None);
    let described = parameters.into_iter().fold(described, OperationBuilder::parameter);
    returns(described, reference::<T>())
}

fn returns(described: OperationBuilder, schema: RefOr<Schema>) -> OperationBuilder {
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let response = ResponseBuilder::new().description("The document").content("application/json", content);
    described.response("200", response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_documented_description_is_the_served_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
        if std::env::var_os("OAIMEND_BLESS").is_some() {
            std::fs::write(&path, open_api()).expect("a writable file");
        }
        let documented = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            documented == open_api(),
            "OAIMEND_BLESS=1 cargo test -p oaimend-api writes {}",
            path.display()
        );
    }
}
