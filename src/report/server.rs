//! Renders the server's own metrics over the window as a table.

use crate::analysis::ServerFigure;
use crate::rows::{Facts, Telemetry};
use crate::telemetry::canonical::Unit;

use super::format::{digits, fill, plain};
use super::grid;

/// Renders the table; returns an empty string if nothing was scraped.
pub(super) fn block(figures: &[ServerFigure], facts: &Facts) -> String {
    let Some(telemetry) = &facts.telemetry else { return String::new() };
    let mut table = grid::table();
    for figure in figures {
        let text = match &figure.value {
            Ok(value) => number(figure.unit, *value),
            Err(why) => format!("n/a ({why})"),
        };
        table.add_row([figure.name.replace('_', " "), text]);
    }
    let rows =
        if figures.is_empty() { "  no known metric on its pages\n".to_owned() } else { grid::text(table, 2, &[1]) };
    format!("server in the window\n{}{rows}", scrapes(telemetry))
}

/// Describes the scrapes: `61 scrapes of 2 pages every 1s, 3 failed, the first of http://…: timeout`.
fn scrapes(telemetry: &Telemetry) -> String {
    let Telemetry { urls, every_ns, scrapes, gaps, first_gap, .. } = telemetry;
    let pages = match urls.as_slice() {
        [page] => plain(page),
        pages => format!("{} pages", pages.len()),
    };
    let every = crate::units::Nanos(*every_ns);
    let failed = match (gaps, first_gap) {
        (0, _) => String::new(),
        (gaps, Some(first)) => format!(", {gaps} failed, the first of {}", plain(first)),
        (gaps, None) => format!(", {gaps} failed"),
    };
    fill("  ", 4, &format!("{scrapes} scrapes of {pages} every {every}{failed}"))
}

/// Formats a value in the unit in which it is displayed.
fn number(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Share => format!("{}%", digits(value * 100.0)),
        Unit::Seconds => format!("{} ms", digits(value * 1e3)),
        Unit::Bytes => format!("{} GiB", digits(value / f64::from(1 << 30))),
        Unit::Hertz => format!("{} MHz", digits(value / 1e6)),
        Unit::Requests | Unit::Tokens | Unit::Events | Unit::Bits => digits(value),
        Unit::Watts | Unit::Joules | Unit::Celsius | Unit::TokensPerJoule => {
            format!("{} {}", digits(value), unit.symbol())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_says_values_and_reasons() {
        let figure = |name: &str, unit, value| ServerFigure { name: name.into(), unit, doc: String::new(), value };
        let figures = [
            figure("requests_running_mean", Unit::Requests, Ok(7.25)),
            figure("queue_seconds_mean", Unit::Seconds, Ok(0.0123)),
            figure("prefix_hit_share", Unit::Share, Err("nothing was counted in the window".to_owned())),
        ];
        let telemetry = Telemetry {
            urls: vec!["http://h/metrics".into()],
            every_ns: 1_000_000_000,
            scrapes: 61,
            gaps: 1,
            first_gap: Some("http://h/metrics: HTTP 503".into()),
            ..Telemetry::default()
        };
        let facts = Facts { telemetry: Some(telemetry), ..Facts::default() };
        insta::assert_snapshot!(block(&figures, &facts), @r"
        server in the window
          61 scrapes of http://h/metrics every 1s, 1 failed, the first of http://h/metrics: HTTP 503
        requests running mean  7.25
        queue seconds mean     12.3 ms
        prefix hit share       n/a (nothing was counted in the window)
        ");
        assert_eq!(block(&figures, &Facts::default()), "");
    }
}
