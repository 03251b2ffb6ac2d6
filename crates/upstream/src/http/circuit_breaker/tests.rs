use crate::http::circuit_breaker::*;

fn at(secs: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
}

fn status(code: u16) -> Failure {
    Failure::new(Reason::Status, "no").after_status(code, None)
}

fn refused() -> Failure {
    Failure::new(Reason::ConnectionRefused, "gone")
}

fn silent() -> Failure {
    Failure::new(Reason::ResponseTimeout, "silent")
}

/// Admits a request and lets it fail. Returns whether Identify has to be requested.
#[track_caller]
fn fail(breaker: &mut CircuitBreaker, now: u64, query: &str, failure: &Failure) -> bool {
    let request = breaker.request(query);
    let admission = breaker.admit(at(now), request).expect("it is admitted");
    breaker.failed(at(now), &admission, failure)
}

fn refuse(breaker: &mut CircuitBreaker, now: u64, query: &str) -> OpenCircuit {
    let request = breaker.request(query);
    breaker.admit(at(now), request).expect_err("it rests")
}

fn is_open(breaker: &CircuitBreaker) -> bool {
    breaker.circuit_open_secs(at(0)).is_some()
}

#[test]
fn five_failed_connections_open_the_circuit_and_a_response_closes_it() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        assert!(!is_open(&breaker));
        fail(&mut breaker, 0, "a", &refused());
    }
    let resting = refuse(&mut breaker, 10, "b");
    assert_eq!((resting.secs, resting.is_alone, resting.because.as_str()), (20, false, "gone"));
    let request = breaker.request("b");
    let attempt = breaker.admit(at(30), request).expect("the rest is over");
    assert_eq!(refuse(&mut breaker, 30, "c").secs, 5, "one attempt at a time");
    breaker.succeeded(&attempt);
    assert!(breaker.admit(at(30), request).is_ok());
}

#[test]
fn request_after_the_exact_wait_is_admitted() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        fail(&mut breaker, 0, "a", &refused());
    }
    for millis in [1, 999, 29_001] {
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let mut breaker = breaker.clone();
        let secs = breaker.admit(now, breaker.request("b")).expect_err("it rests").secs;
        assert_eq!(breaker.circuit_open_secs(now), Some(secs), "{millis}");
        let then = now + Duration::from_secs(secs);
        assert!(breaker.admit(then, breaker.request("b")).is_ok(), "{millis}");
    }
}

#[test]
fn a_failed_attempt_lengthens_the_rest_and_a_lost_one_is_replaced() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        fail(&mut breaker, 0, "a", &refused());
    }
    fail(&mut breaker, 30, "b", &refused());
    assert_eq!(refuse(&mut breaker, 31, "b").secs, 59);
    let request = breaker.request("b");
    let lost = breaker.admit(at(90), request).expect("the rest is over");
    assert_eq!(refuse(&mut breaker, 90, "c").secs, 5);
    let next = breaker.admit(at(121), request).expect("the first attempt is lost");
    breaker.failed(at(122), &lost, &refused());
    assert_eq!(refuse(&mut breaker, 122, "c").secs, 5, "a lost attempt does not lengthen the rest");
    breaker.failed(at(122), &next, &refused());
    assert_eq!(refuse(&mut breaker, 122, "c").secs, 120);
}

#[test]
fn requests_from_before_a_rest_do_not_lengthen_it() {
    let mut breaker = CircuitBreaker::default();
    let queries: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let admissions: Vec<Admission> = queries
        .iter()
        .map(|query| breaker.admit(at(0), breaker.request(query)).expect("nothing has failed"))
        .collect();
    let mut questions = 0;
    for admission in &admissions {
        if breaker.failed(at(30), admission, &silent()) {
            questions += 1;
            breaker.identified(at(30), admission, Some(Err(&silent())));
        }
    }
    assert_eq!((questions, breaker.circuit_open_secs(at(30))), (1, Some(30)));
    assert_eq!(refuse(&mut breaker, 30, "other").age, Duration::ZERO);
}

#[test]
fn a_request_that_fails_alone_rests_alone() {
    let mut breaker = CircuitBreaker::default();
    for failure in [status(500), silent(), status(403), status(500), status(500)] {
        assert!(!fail(&mut breaker, 0, "bad", &failure));
    }
    let resting = refuse(&mut breaker, 10, "bad");
    assert_eq!((resting.secs, resting.is_alone), (20, true));
    assert_eq!(breaker.admit(at(10), breaker.request("good")).map(|admission| admission.of_source), Ok(None));
    fail(&mut breaker, 30, "bad", &status(500));
    assert_eq!(refuse(&mut breaker, 30, "bad").secs, 60, "the next rest is longer");
    let attempt = breaker.admit(at(90), breaker.request("bad")).expect("the rest is over");
    breaker.succeeded(&attempt);
    assert!(!fail(&mut breaker, 90, "bad", &status(500)) && breaker.admit(at(90), attempt).is_ok());
}

#[test]
fn identify_decides_after_different_requests_fail() {
    for is_alive in [false, true] {
        let mut breaker = CircuitBreaker::default();
        assert!(!fail(&mut breaker, 0, "a", &status(500)));
        assert!(!fail(&mut breaker, 1, "a", &status(500)), "no other request");
        assert!(!fail(&mut breaker, 2, "b", &status(500)));
        let admission = breaker.admit(at(3), breaker.request("c")).expect("nothing rests");
        assert!(breaker.failed(at(3), &admission, &status(500)));
        assert!(!fail(&mut breaker, 3, "d", &status(500)), "Identify is already in progress");
        let failure = status(500);
        let answer = if is_alive { Ok(()) } else { Err(&failure) };
        breaker.identified(at(4), &admission, Some(answer));
        assert_eq!(is_open(&breaker), !is_alive);
        if !is_alive {
            assert_eq!(refuse(&mut breaker, 4, "e").age, Duration::from_secs(4), "since the first failure");
        }
    }
}

#[test]
fn a_response_resets_the_count_of_different_requests() {
    let mut breaker = CircuitBreaker::default();
    for round in 0..3 {
        assert!(!fail(&mut breaker, round, &format!("a{round}"), &status(500)));
        assert!(!fail(&mut breaker, round, &format!("b{round}"), &status(500)));
        for _ in 0..4 {
            fail(&mut breaker, round, "c", &refused());
        }
        let admission = breaker.admit(at(round), breaker.request("good")).expect("nothing rests");
        breaker.succeeded(&admission);
    }
    assert!(!is_open(&breaker));
}

#[test]
fn a_failing_attempt_closes_the_circuit_if_identify_succeeds() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        fail(&mut breaker, 0, "a", &refused());
    }
    let attempt = breaker.admit(at(30), breaker.request("bad")).expect("the rest is over");
    assert!(breaker.failed(at(30), &attempt, &status(500)), "Identify decides");
    breaker.identified(at(30), &attempt, Some(Ok(())));
    assert!(breaker.admit(at(30), breaker.request("good")).is_ok());
}

#[test]
fn failures_of_other_parties_begin_no_rest() {
    let mut breaker = CircuitBreaker::default();
    for number in 0..20 {
        let query = number.to_string();
        fail(&mut breaker, 0, "same", &Failure::new(Reason::Quarantine, ""));
        fail(&mut breaker, 0, "other", &status(404));
        assert!(!fail(&mut breaker, 0, &query, &status(404)));
        assert!(!fail(&mut breaker, 0, &query, &Failure::new(Reason::Ledger, "")));
    }
    for _ in 0..4 {
        fail(&mut breaker, 0, "elsewhere", &refused().after_status(302, None));
    }
    assert!(!is_open(&breaker));
    assert!(breaker.admit(at(0), breaker.request("same")).is_ok());
}

#[test]
fn a_response_of_the_source_ends_the_short_rests_of_requests_too() {
    let mut breaker = CircuitBreaker::default();
    for round in 0..20 {
        let resting = breaker.requests.get(&breaker.request("bad").request).and_then(|bad| bad.rest.clone());
        let now = resting.map_or(round, |rest| rest.until.duration_since(at(0)).expect("later").as_secs());
        fail(&mut breaker, now, "bad", &status(500));
        let rest = breaker.requests.get(&breaker.request("bad").request).and_then(|bad| bad.rest.clone());
        assert!(rest.is_none_or(|rest| rest.until <= at(now) + LONGEST_REST_ALONE));
    }
    for _ in 0..5 {
        fail(&mut breaker, 10_000, "other", &refused());
    }
    let attempt = breaker.admit(at(10_030), breaker.request("other")).expect("the rest is over");
    breaker.succeeded(&attempt);
    assert!(breaker.admit(at(10_030), breaker.request("bad")).is_ok());
}

#[test]
fn five_forbidden_responses_begin_a_long_rest() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        fail(&mut breaker, 0, "a", &status(403));
    }
    assert_eq!(refuse(&mut breaker, 1, "a").secs, 599);
}

#[test]
fn an_outage_starts_with_its_first_failure_and_ends_with_a_response_or_a_pause() {
    let mut breaker = CircuitBreaker::default();
    let age = |breaker: &CircuitBreaker, now, query| {
        breaker.age(at(now), &breaker.request(query), &status(500)).as_secs()
    };
    fail(&mut breaker, 0, "a", &status(500));
    fail(&mut breaker, 600, "a", &status(500));
    assert_eq!((age(&breaker, 600, "a"), age(&breaker, 600, "b")), (600, 0));
    fail(&mut breaker, 600 + 2 * 3600, "a", &status(500));
    assert_eq!(age(&breaker, 7800, "a"), 7800);
    fail(&mut breaker, 20_000, "a", &status(500));
    assert_eq!(age(&breaker, 20_000, "a"), 0, "another outage");
    let admission = breaker.admit(at(20_100), breaker.request("a")).expect("nothing rests");
    breaker.succeeded(&admission);
    assert_eq!(age(&breaker, 20_100, "a"), 0);
}

#[test]
fn a_clock_that_is_set_back_does_not_lengthen_a_rest() {
    let mut breaker = CircuitBreaker::default();
    for _ in 0..5 {
        fail(&mut breaker, 7_200, "a", &refused());
    }
    assert_eq!(breaker.circuit_open_secs(at(3_600)), Some(30));
    assert_eq!(refuse(&mut breaker, 3_600, "b").secs, 30);
    assert_eq!(refuse(&mut breaker, 3_610, "b").secs, 20);
    assert_eq!(breaker.circuit_open_secs(at(3_610)), Some(20));
    let lost = breaker.admit(at(3_630), breaker.request("b")).expect("the rest is over");
    assert_eq!(refuse(&mut breaker, 10, "c").secs, 5);
    let next = breaker.admit(at(41), breaker.request("c")).expect("the attempt is lost");
    assert_ne!(lost, next);
    breaker.succeeded(&next);
    assert!(!is_open(&breaker));
}

#[test]
fn the_number_of_tracked_requests_is_limited() {
    let mut breaker = CircuitBreaker::default();
    for number in 0..3 * REQUESTS_MAX {
        let request = breaker.request(&number.to_string());
        breaker.failed(at(number as u64), &request, &Failure::new(Reason::Incomplete, ""));
        assert!(
            breaker.requests.len() <= REQUESTS_MAX && breaker.suspects.len() <= DIFFERENT_FAILURES_TO_ASK
        );
    }
    let last = breaker.request(&(3 * REQUESTS_MAX - 1).to_string());
    assert!(breaker.requests.contains_key(&last.request), "the oldest is dropped first");
}
