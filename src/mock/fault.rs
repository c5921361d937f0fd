//! Faults and when they occur. Parses the values of `--fault KIND[:NUMBER]@WHEN`.

use std::fmt;
use std::str::FromStr;

use rand::RngExt;

use super::random::random;
use crate::units::Share;

/// One fault and the requests that it affects.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: Kind,
    /// The affected requests, or the affected connections for [`Kind::Refuse`].
    pub when: When,
}

/// The kind of a fault. An optional number is the number of tokens after which a stream is affected; `None`
/// means after half of its tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// The connection is reset before anything is read from it.
    Refuse,
    /// An error body with this status is sent instead of a response.
    Http(u16),
    /// The response stops after some tokens and the connection is reset.
    Reset(Option<u32>),
    /// The response stops after some tokens, and the connection stays open. The slot is released.
    Stall(Option<u32>),
    /// Nothing is ever sent, and the connection stays open. No slot is taken.
    StallHeaders,
    /// The response ends in the middle of an event's JSON, but its HTTP body ends properly.
    Truncate(Option<u32>),
    /// The connection closes in the middle of an event's JSON, before the HTTP body has ended.
    Close(Option<u32>),
    /// One event is not JSON; the response continues.
    InvalidJson(Option<u32>),
    /// One event contains bytes that are not UTF-8; the response continues.
    InvalidUtf8(Option<u32>),
    /// One event is JSON with an unexpected structure; the response continues.
    WrongShape(Option<u32>),
    /// The 200 response contains an error object and ends there.
    ErrorObject(Option<u32>),
    /// The 200 response contains no tokens.
    Empty,
    /// The response has this many tokens, or half of the requested ones, and reports `stop`.
    Short(Option<u32>),
    /// The response has this many tokens, or twice as many as requested.
    Long(Option<u32>),
    /// The usage reports this many completion tokens, regardless of the response.
    Usage(u32),
    /// One event contains a text of this many bytes.
    HugeLine(u32),
    /// Every delay in the response is multiplied by this factor.
    Slow(u32),
    /// From this request on, nothing is written on any stream for this many milliseconds; then all streams
    /// continue. The request itself gets its response.
    Pause(u32),
    /// The whole server ends as if it had crashed.
    Exit,
}

/// The requests that a fault affects. Requests are numbered from 1 in their order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    /// All requests.
    All,
    /// Each request with this probability, as determined by the seed.
    Rate(Share),
    /// Every n-th request.
    Every(u64),
    /// Requests in one of these ranges, each with its first and last number.
    Numbers(Vec<(u64, u64)>),
}

/// Why a text is not a valid fault. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The text contains no `@`.
    #[error("`{0}` does not state when it occurs: add @ and a rate (5%), request numbers (3,7,10-12), every:10 or all")]
    NoWhen(String),
    /// The kind is unknown.
    #[error("`{0}` is not a known fault: write one of {names}", names = NAMES.map(|(name, _)| name).join(", "))]
    UnknownKind(String),
    /// `http` has no status, or an impossible one.
    #[error("`{0}` needs a status from 300 to 599: write it like http:503")]
    Status(String),
    /// There is a number after a kind that accepts none.
    #[error("`{0}` accepts no number: write {1}")]
    NoNumber(String, &'static str),
    /// The part after the colon is not a number.
    #[error("`{0}` has no whole number after the colon: write it like {1}:5")]
    Number(String, &'static str),
    /// The text after the `@` has none of the four forms of [`When`].
    #[error(
        "`{0}` is not a valid time for a fault: write a rate (5%), request numbers from 1 (3,7,10-12,20-), \
         every:10 or all"
    )]
    When(String),
}

/// What may follow the name of a kind: nothing, a status, an optional number of tokens, or a number with a
/// default.
#[derive(Debug, Clone, Copy)]
enum Form {
    Bare(Kind),
    Status,
    Tokens(fn(Option<u32>) -> Kind),
    Number(fn(u32) -> Kind, u32),
}

/// All kinds of faults by name. The numbers are the defaults of the kinds that have a number. They exceed all
/// realistic values: 16 MiB for a line, a factor of 10, two billion tokens for a response, and a pause of one
/// second.
const NAMES: [(&str, Form); 19] = [
    ("refuse", Form::Bare(Kind::Refuse)),
    ("http", Form::Status),
    ("reset", Form::Tokens(Kind::Reset)),
    ("stall", Form::Tokens(Kind::Stall)),
    ("stall-headers", Form::Bare(Kind::StallHeaders)),
    ("truncate", Form::Tokens(Kind::Truncate)),
    ("close", Form::Tokens(Kind::Close)),
    ("invalid-json", Form::Tokens(Kind::InvalidJson)),
    ("invalid-utf8", Form::Tokens(Kind::InvalidUtf8)),
    ("wrong-shape", Form::Tokens(Kind::WrongShape)),
    ("error-object", Form::Tokens(Kind::ErrorObject)),
    ("empty", Form::Bare(Kind::Empty)),
    ("short", Form::Tokens(Kind::Short)),
    ("long", Form::Tokens(Kind::Long)),
    ("usage", Form::Number(Kind::Usage, 2_000_000_000)),
    ("huge-line", Form::Number(Kind::HugeLine, 16 << 20)),
    ("slow", Form::Number(Kind::Slow, 10)),
    ("pause", Form::Number(Kind::Pause, 1_000)),
    ("exit", Form::Bare(Kind::Exit)),
];

impl FromStr for Kind {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Kind, FaultError> {
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let (name, form) =
            NAMES.iter().find(|(known, _)| *known == name).ok_or_else(|| FaultError::UnknownKind(text.into()))?;
        let whole = |number: &str| number.parse::<u32>().map_err(|_| FaultError::Number(text.into(), name));
        match (*form, number) {
            (Form::Bare(kind), None) => Ok(kind),
            (Form::Bare(_), Some(_)) => Err(FaultError::NoNumber(text.into(), name)),
            (Form::Status, number) => number
                .and_then(|number| number.parse().ok())
                .filter(|status| (300..=599).contains(status))
                .map(Kind::Http)
                .ok_or_else(|| FaultError::Status(text.into())),
            (Form::Tokens(kind), number) => number.map(whole).transpose().map(kind),
            (Form::Number(kind, default), number) => number.map_or(Ok(default), whole).map(kind),
        }
    }
}

impl fmt::Display for Kind {
    /// Writes the name without the number, as in the log; only `http` is written with its status.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Kind::Http(status) = self {
            return write!(f, "http:{status}");
        }
        let same = |form: &Form| match *form {
            Form::Bare(kind) => kind == *self,
            Form::Status => false,
            Form::Tokens(kind) => std::mem::discriminant(&kind(None)) == std::mem::discriminant(self),
            Form::Number(kind, _) => std::mem::discriminant(&kind(0)) == std::mem::discriminant(self),
        };
        f.write_str(NAMES.iter().find(|(_, form)| same(form)).map_or("", |(name, _)| name))
    }
}

impl FromStr for When {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<When, FaultError> {
        let wrong = || FaultError::When(text.into());
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong);
        if text == "all" {
            return Ok(When::All);
        }
        if text.ends_with('%') {
            return text.parse().map(When::Rate).map_err(|_| wrong());
        }
        if let Some(every) = text.strip_prefix("every:") {
            return number(every).map(When::Every);
        }
        let range = |part: &str| match part.split_once('-') {
            None => number(part).map(|only| (only, only)),
            Some((first, "")) => number(first).map(|first| (first, u64::MAX)),
            Some((first, last)) => {
                let range = (number(first)?, number(last)?);
                if range.0 <= range.1 { Ok(range) } else { Err(wrong()) }
            }
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(When::Numbers)
    }
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Fault, FaultError> {
        let (kind, when) = text.split_once('@').ok_or_else(|| FaultError::NoWhen(text.into()))?;
        Ok(Fault { kind: kind.parse()?, when: when.parse()? })
    }
}

impl When {
    fn strikes(&self, number: u64, seed: u64, position: usize) -> bool {
        match self {
            When::All => true,
            When::Every(every) => number.is_multiple_of(*every),
            When::Numbers(ranges) => ranges.iter().any(|(first, last)| (*first..=*last).contains(&number)),
            // The position in the list is part of the seed, so that two faults with equal rates do not
            // affect the same requests.
            When::Rate(share) => {
                random(seed.wrapping_add(position as u64), b"flt ", number).random::<f64>() < share.to_f64()
            }
        }
    }
}

/// Returns the first of `faults` that affects connection `number` before anything is read from it; `None`
/// if none does.
pub(super) fn of_connection(faults: &[Fault], number: u64, seed: u64) -> Option<Kind> {
    first(faults, number, seed, |kind| kind == Kind::Refuse)
}

/// Returns the first of `faults` that affects request `number`; `None` if none does.
pub(super) fn of_request(faults: &[Fault], number: u64, seed: u64) -> Option<Kind> {
    first(faults, number, seed, |kind| kind != Kind::Refuse)
}

fn first(faults: &[Fault], number: u64, seed: u64, wanted: fn(Kind) -> bool) -> Option<Kind> {
    let mut all = faults.iter().enumerate();
    all.find(|(position, fault)| wanted(fault.kind) && fault.when.strikes(number, seed, *position))
        .map(|(_, fault)| fault.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_reads_and_prints_its_name() {
        for (name, form) in NAMES {
            let text = if matches!(form, Form::Status) { "http:429".to_owned() } else { name.to_owned() };
            assert_eq!(text.parse::<Kind>().unwrap().to_string(), text);
        }
        assert_eq!(fault("reset:5@all").kind, Kind::Reset(Some(5)));
        assert_eq!(fault("slow@all").kind, Kind::Slow(10));
        assert_eq!(fault("slow:3@all").kind.to_string(), "slow");
        assert_eq!(fault("pause:300@7").kind, Kind::Pause(300));
    }

    #[test]
    fn numbers_ranges_and_steps_strike() {
        let struck = |text: &str| {
            let faults = [fault(text)];
            (1..=24).filter(|n| of_request(&faults, *n, 0).is_some()).collect::<Vec<u64>>()
        };
        assert_eq!(struck("stall@3,7,10-12,23-"), [3, 7, 10, 11, 12, 23, 24]);
        assert_eq!(struck("empty@every:10"), [10, 20]);
        assert_eq!(struck("empty@all").len(), 24);
        assert!(struck("refuse@all").is_empty());
        assert_eq!(of_connection(&[fault("refuse@2")], 2, 0), Some(Kind::Refuse));
    }

    #[test]
    fn rates_are_by_seed_and_the_first_fault_wins() {
        let faults = [fault("http:503@5%"), fault("reset@5%")];
        let struck = |seed| (1..=10_000).map(|n| of_request(&faults, n, seed)).collect::<Vec<_>>();
        let count = |kind| struck(7).iter().filter(|struck| **struck == Some(kind)).count();
        assert!((400..600).contains(&count(Kind::Http(503))));
        assert!((400..600).contains(&count(Kind::Reset(None))));
        assert_eq!(struck(7), struck(7));
        assert_ne!(struck(7), struck(8));
    }

    #[test]
    fn mistakes_name_the_thing_and_the_remedy() {
        let error = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(
            error("reset"),
            "`reset` does not state when it occurs: add @ and a rate (5%), request numbers (3,7,10-12), every:10 or all"
        );
        assert!(error("rest@all").starts_with("`rest` is not a known fault: write one of refuse, http, reset"));
        assert_eq!(error("http@all"), "`http` needs a status from 300 to 599: write it like http:503");
        assert!(error("http:200@all").contains("300 to 599"));
        assert_eq!(error("empty:3@all"), "`empty:3` accepts no number: write empty");
        assert_eq!(error("reset:x@all"), "`reset:x` has no whole number after the colon: write it like reset:5");
        for when in ["", "0", "5", "3-1", "every:0", "200%", "1,,2"] {
            let result = format!("reset@{when}").parse::<Fault>();
            assert_eq!(result.is_ok(), when == "5", "{when}");
        }
    }
}
