//! Checks that the tables in `docs/TELEMETRY.md` match the tables in the code from which they are
//! generated.

use super::canonical::CANONICAL;
use super::engines::{EXPORTERS, Moment, Source};

const BEGIN: &str = "<!-- from src/telemetry -->\n";
const END: &str = "<!-- to here -->";

fn series() -> String {
    let mut text = "| series | unit | kind | meaning |\n|---|---|---|---|\n".to_owned();
    for series in CANONICAL {
        text += &format!("| `{}` | {} | {} | {} |\n", series.key, series.unit.symbol(), series.kind.name(), series.doc);
    }
    text
}

fn metric(source: &Source) -> String {
    let labels = source.labels.iter().map(|(name, values)| format!("{name}=\"{}\"", values.join("\\|")));
    let labels: Vec<String> = labels.collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let factor = if source.factor == 1.0 { String::new() } else { format!(" × {}", source.factor) };
    format!("`{}{labels}`{factor}", source.metric)
}

fn exporters() -> String {
    let mut text = String::new();
    for exporter in EXPORTERS {
        text += &format!("\n### {}\n\nSource: {}.\n", exporter.title, exporter.source);
        if let Some(mark) = exporter.only_with {
            text +=
                &format!("Other servers use the same metric names, so a page is recognized by the metric `{mark}`.\n");
        }
        for (key, moment) in exporter.counted {
            let when = match moment {
                Moment::FirstToken => "before it sends the first token",
                Moment::End => "when the request ends",
            };
            text += &format!("This server records the `{key}` of a request {when}.\n");
        }
        text += "\n| series | metric |\n|---|---|\n";
        for source in exporter.series {
            let plus = if source.adds { "+ " } else { "" };
            text += &format!("| `{}` | {plus}{} |\n", source.canonical, metric(source));
        }
    }
    text
}

#[test]
fn the_tables_of_the_page_are_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/TELEMETRY.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the start of the tables");
    let (_, after) = rest.split_once(END).expect("the end of the tables");
    let wanted = format!("{before}{BEGIN}\n{}{}\n{END}{after}", series(), exporters());
    if std::env::var_os("SWEEPLINE_BLESS").is_some() {
        std::fs::write(path, &wanted).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page == wanted, "run SWEEPLINE_BLESS=1 cargo test -p sweepline-core --lib current");
}
