use crate::request::*;

#[track_caller]
fn check(query: &str, upstream: &str) {
    assert_eq!(
        Request::parse(query.as_bytes()).map(|request| request.query().to_owned()),
        Ok(upstream.to_owned())
    );
}

#[track_caller]
fn check_refused(query: &str, code: ErrorCode, text: &str) {
    let refusal = Request::parse(query.as_bytes()).err();
    assert_eq!(refusal, Some(RequestError { code, text: text.to_owned() }));
}

#[test]
fn the_query_for_the_source_has_the_verb_first_and_values_encoded_once() {
    check("verb=Identify", "verb=Identify");
    check("&&verb=Identify&", "verb=Identify");
    check(
        "metadataPrefix=oai_dc&from=2020-01-01&verb=ListRecords&set=a%3Ab",
        "verb=ListRecords&metadataPrefix=oai_dc&from=2020-01-01&set=a%3Ab",
    );
    check("verb=ListSets&resumptionToken=a|b!c=d=", "verb=ListSets&resumptionToken=a%7Cb%21c%3Dd%3D");
    check("verb=ListSets&resumptionToken=100%25%2B1+2", "verb=ListSets&resumptionToken=100%25%2B1%202");
    check("verb=ListSets&resumptionToken=100%&", "verb=ListSets&resumptionToken=100%25");
    check("verb=ListSets&resumptionToken=%zz%4", "verb=ListSets&resumptionToken=%25zz%254");
    check("%76erb=List%53ets", "verb=ListSets");
    check(
        "verb=ListMetadataFormats&identifier=oai:x:%C3%A9",
        "verb=ListMetadataFormats&identifier=oai%3Ax%3A%C3%A9",
    );
}

#[test]
fn a_query_made_from_a_request_is_the_same_request_again() {
    let query = "verb=GetRecord&identifier=%F0%9F%98%80%20%2B%26%3D%25%7E&metadataPrefix=oai_dc";
    let request = Request::parse(query.as_bytes());
    assert_eq!(Request::parse(query.replace("%7E", "~").as_bytes()), request);
    let again = request.map(|request| request.query().to_owned()).unwrap_or_default();
    assert_eq!(again, query.replace("%7E", "~"));
}

#[test]
fn a_wrong_verb_is_answered_with_what_would_be_right() {
    let all = "GetRecord, Identify, ListIdentifiers, ListMetadataFormats, ListRecords, ListSets";
    check_refused("", ErrorCode::BadVerb, &format!("the argument verb is missing; expected one of {all}"));
    check_refused("verb=", ErrorCode::BadVerb, &format!("\"\" is not a verb; expected one of {all}"));
    check_refused("verb=identify", ErrorCode::BadVerb, "\"identify\" is not a verb; did you mean Identify?");
    check_refused("verb=Identify&verb=Identify", ErrorCode::BadVerb, "the argument verb is repeated");
    let long = "x".repeat(1000);
    check_refused(
        &format!("verb={long}"),
        ErrorCode::BadVerb,
        &format!("\"{}…\" is not a verb; expected one of {all}", &long[..60]),
    );
}

#[test]
fn missing_repeated_unknown_and_exclusive_arguments_are_refused() {
    let bad = ErrorCode::BadArgument;
    check_refused(
        "verb=ListRecords",
        bad,
        "ListRecords requires the argument metadataPrefix, or a resumptionToken alone",
    );
    check_refused("verb=GetRecord&metadataPrefix=x", bad, "GetRecord requires the argument identifier");
    check_refused("verb=GetRecord&identifier=x", bad, "GetRecord requires the argument metadataPrefix");
    check_refused("verb=ListSets&set=x", bad, "ListSets does not take the argument set");
    check_refused("verb=Identify&foo=1", bad, "\"foo\" is not an argument of Identify");
    check_refused(
        "verb=ListRecords&metadataprefix=oai_dc",
        bad,
        "\"metadataprefix\" is not an argument; did you mean metadataPrefix?",
    );
    check_refused(
        "verb=ListRecords&metadataPrefix=a&metadataPrefix=a",
        bad,
        "the argument metadataPrefix is repeated",
    );
    check_refused(
        "verb=ListRecords&resumptionToken=t&metadataPrefix=oai_dc&set=s",
        bad,
        "resumptionToken is exclusive: it excludes metadataPrefix, set; the token represents the first request of its list",
    );
}

#[test]
fn dates_that_no_repository_could_harvest_by_are_refused() {
    let list = |dates: &str| format!("verb=ListIdentifiers&metadataPrefix=oai_dc&{dates}");
    let right = "which is not a date; expected YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ";
    for (name, date) in [
        ("from", "junk"),
        ("from", "2023-02-29"),
        ("until", "2024-01-01T00:00Z"),
        ("from", "2024-01-01T00:00:00.5Z"),
        ("until", "2024-01-01T00:00:00 02:00"),
    ] {
        let text = format!("{name} is \"{date}\", {right}");
        check_refused(&list(&format!("{name}={date}")), ErrorCode::BadArgument, &text);
    }
    check_refused(
        &list("from=2024-01-01&until=2024-01-02T00:00:00Z"),
        ErrorCode::BadArgument,
        "from 2024-01-01 and until 2024-01-02T00:00:00Z are of different granularity",
    );
    check_refused(
        &list("until=2024-01-01&from=2024-01-02"),
        ErrorCode::BadArgument,
        "from 2024-01-02 is later than until 2024-01-01",
    );
    for dates in ["from=2024-01-01&until=2024-01-01", "from=2024-02-29T23:59:59Z", "until=1000-01-01"] {
        assert_eq!(Request::parse(list(dates).as_bytes()).map(|_| ()), Ok(()), "{dates}");
    }
}

#[test]
fn values_that_no_answer_could_repeat_are_refused() {
    let bad = ErrorCode::BadArgument;
    check_refused(
        "verb=ListSets&resumptionToken=%E9",
        bad,
        "the value of resumptionToken is not UTF-8; percent-encode its UTF-8 bytes",
    );
    check_refused(
        "verb=ListSets&resumptionToken=a%00b",
        bad,
        "the value of resumptionToken contains U+0000, which XML does not allow",
    );
    check_refused("verb=Identify&%FF=1", bad, "\"\u{FFFD}\" is not an argument of Identify");
}

#[test]
fn empty_values_are_refused() {
    let list = "verb=ListRecords&metadataPrefix=oai_dc";
    for query in [
        &format!("{list}&set="),
        &format!("{list}&set"),
        &format!("{list}&from=&until=2024-01-01"),
        &format!("{list}&until="),
        "verb=ListIdentifiers&metadataPrefix=",
        "verb=ListMetadataFormats&identifier=",
        "verb=GetRecord&identifier=&metadataPrefix=oai_dc",
    ] {
        let refusal = Request::parse(query.as_bytes()).err();
        let empty =
            query.split('&').find_map(|pair| pair.strip_suffix('=').or((pair == "set").then_some(pair)));
        let text = format!("the value of {} is empty", empty.unwrap_or_default());
        assert_eq!(refusal, Some(RequestError { code: ErrorCode::BadArgument, text }), "{query}");
    }
    for verb in ["ListRecords", "ListIdentifiers", "ListSets"] {
        let text = "the value of resumptionToken is empty";
        check_refused(&format!("verb={verb}&resumptionToken="), ErrorCode::BadResumptionToken, text);
    }
    check_refused(
        "verb=GetRecord&resumptionToken=",
        ErrorCode::BadArgument,
        "GetRecord does not take the argument resumptionToken",
    );
    // A blank is a value: the source decides.
    check(&format!("{list}&set=+"), &format!("{list}&set=%20"));
}

#[test]
fn colons_and_slashes_of_an_identifier_can_be_literal() {
    let query = "verb=GetRecord&identifier=oai%3Ax%3Aa%2Fb%26c%3F%C3%A9&metadataPrefix=a%3Ab";
    let request = Request::parse(query.as_bytes());
    let literal = "verb=GetRecord&identifier=oai:x:a/b%26c%3F%C3%A9&metadataPrefix=a%3Ab";
    let written = request.as_ref().map(Request::query_with_literal_identifier);
    assert_eq!(written.as_deref(), Ok(literal));
    assert_eq!(Request::parse(literal.as_bytes()), request);
}

#[test]
fn dates_before_the_earliest_datestamp_can_be_omitted() {
    let list = "verb=ListRecords&metadataPrefix=a";
    for (earliest, dates, left) in [
        ("2024-05-30T10:00:00Z", "from=2024-05-30T09:59:59Z", ""),
        ("2024-05-30T10:00:00Z", "from=2024-05-30T10:00:00Z", "from=2024-05-30T10:00:00Z"),
        ("2024-05-30T10:00:00Z", "from=2024-05-30", ""),
        ("2024-05-30T10:00:00Z", "from=2024-05-30&until=2024-05-30", "until=2024-05-30"),
        ("2024-05-30T10:00:00Z", "until=2024-05-29", ""),
        ("2024-05-30", "from=2024-05-30T00:00:00Z", "from=2024-05-30T00:00:00Z"),
        ("2024-05-30", "from=2024-05-29T23:59:59Z&until=2024-05-29T23:59:59Z", ""),
        ("2024-05-30", "from=2024-05-30", "from=2024-05-30"),
    ] {
        let request = Request::parse(format!("{list}&{dates}").as_bytes());
        let rest = request.map(|request| {
            let rest = request.without_dates_before(earliest).query().replace("%3A", ":");
            (rest, request.has_date_before(earliest))
        });
        let separator = if left.is_empty() { "" } else { "&" };
        let expected = format!("{list}{separator}{left}");
        assert_eq!(rest, Ok((expected, left != dates)), "{earliest} {dates}");
    }
}

#[test]
fn the_own_request_says_the_decoded_values() {
    let request = Request::parse(b"metadataPrefix=oai_dc&verb=ListRecords&set=a%26b");
    let echo = request.map(|request| request.to_echo("http://p.example/x")).ok();
    let arguments = [("verb", "ListRecords"), ("metadataPrefix", "oai_dc"), ("set", "a~x26.b")];
    // As the schema allows it: in the alphabet of setSpecs.
    assert_eq!(
        echo,
        Some(RequestEcho {
            base_url: "http://p.example/x".into(),
            arguments: arguments.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        })
    );
}

/// A request to a component of an Open Digital Library.
fn odl(query: &str) -> Request {
    Request::parse_odl(query.as_bytes()).unwrap_or_else(|_| unreachable!("{query} is a legal request"))
}

#[test]
fn a_request_to_a_component_needs_no_format_and_writes_verb_in_any_case() {
    for query in [
        "Verb=ListRecords&set=a/b/1/10",
        "VERB=ListRecords&set=a/b/1/10",
        "verb=ListRecords&set=a%2Fb%2F1%2F10",
    ] {
        let request = odl(query);
        assert_eq!(request.argument(Argument::Set), Some("a/b/1/10"), "{query}");
        assert!(!request.to_echo("u").arguments.iter().any(|(name, _)| name == "metadataPrefix"), "{query}");
        assert_eq!(request.or_format("oai_dc").argument(Argument::MetadataPrefix), Some("oai_dc"), "{query}");
    }
    let named = odl("Verb=GetRecord&identifier=x&metadataPrefix=mods");
    assert_eq!(named.or_format("oai_dc").argument(Argument::MetadataPrefix), Some("mods"));
    for query in
        ["Verb=ListRecords&resumptionToken=t", "Verb=Identify", "Verb=ListMetadataFormats", "verb=ListSets"]
    {
        let request = odl(query);
        assert_eq!(request.clone().or_format("oai_dc"), request, "{query}");
    }
    for (query, code) in [
        ("Verb=ListRecords&verb=ListRecords", ErrorCode::BadVerb),
        ("set=a", ErrorCode::BadVerb),
        ("Verb=GetRecord", ErrorCode::BadArgument),
        ("Verb=ListRecords&Set=a", ErrorCode::BadArgument),
        ("Verb=ListRecords&from=2020", ErrorCode::BadArgument),
    ] {
        assert_eq!(Request::parse_odl(query.as_bytes()).map_err(|error| error.code), Err(code), "{query}");
    }
}
