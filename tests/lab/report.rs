//! The page of `report`: its tables, what every page must satisfy, and the page in a browser.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::Lab;
use super::sweeps::honest;

/// A parsed page.
pub struct Page {
    pub text: String,
}

/// A table of a page: headings, and rows of texts with the numbers that they show.
#[derive(Debug)]
pub struct Table {
    pub headings: Vec<String>,
    pub rows: Vec<Vec<(String, Option<f64>)>>,
}

impl Page {
    pub fn of(lab: &Lab, file: &str) -> Page {
        Page { text: std::fs::read_to_string(lab.path().join(file)).unwrap() }
    }

    /// Returns the text between two texts, for each occurrence.
    pub fn between<'p>(text: &'p str, from: &str, to: &str) -> Vec<&'p str> {
        text.split(from).skip(1).filter_map(|rest| rest.split_once(to)).map(|(inside, _)| inside).collect()
    }

    /// Returns the section with an anchor.
    pub fn section(&self, id: &str) -> Option<&str> {
        let rest = self.text.split_once(&format!("<section id=\"{id}\""))?.1;
        rest.split_once("</section>").map(|(inside, _)| inside)
    }

    /// Returns the tables of a section.
    pub fn tables(&self, section: &str) -> Vec<Table> {
        let section = self.section(section).unwrap_or_else(|| panic!("no section {section}"));
        Page::between(section, "<table>", "</table>").into_iter().map(Table::of).collect()
    }

    /// Returns the visible text, in one line.
    pub fn words(&self) -> String {
        let mut out = String::new();
        let mut inside = false;
        let body = self.text.split_once("<body>").and_then(|(_, body)| body.split_once("<script")).unwrap().0;
        for c in body.chars() {
            match c {
                '<' => inside = true,
                '>' => {
                    inside = false;
                    out.push(' ');
                }
                c if !inside => out.push(c),
                _ => {}
            }
        }
        unescaped(&out).split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Table {
    pub fn of(html: &str) -> Table {
        let cells = |row: &str, tag: &str| -> Vec<(String, Option<f64>)> {
            let cell = |cell: &str| {
                let inside = cell.split_once('>').map_or("", |(_, inside)| inside);
                let value = Page::between(inside, "<data value=\"", "\"").first().map(|text| text.parse().unwrap());
                let text: String =
                    inside.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
                let text = unescaped(&text);
                let value = value.or_else(|| text.parse().ok());
                (text, value)
            };
            Page::between(row, &format!("<{tag}"), &format!("</{tag}>")).into_iter().map(cell).collect()
        };
        let rows = Page::between(html, "<tr>", "</tr>");
        let headings = rows[0].split("<th").skip(1).map(|cell| cells(&format!("<th{cell}"), "th").remove(0).0);
        Table { headings: headings.collect(), rows: rows[1..].iter().map(|row| cells(row, "td")).collect() }
    }

    pub fn at(&self, heading: &str) -> Option<usize> {
        self.headings.iter().position(|own| own == heading)
    }

    pub fn number(&self, row: usize, heading: &str) -> Option<f64> {
        self.rows[row][self.at(heading).unwrap_or_else(|| panic!("{:?} has no {heading}", self.headings))].1
    }

    pub fn text(&self, row: usize, heading: &str) -> &str {
        &self.rows[row][self.at(heading).unwrap()].0
    }
}

pub fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&apos;", "'"), ("&amp;", "&")]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

pub fn json(lab: &Lab, args: &[&str]) -> Value {
    lab.ok(&[args, &["--format", "json"]].concat()).json()
}

pub fn measured(plan: &str) -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", plan);
    honest(&lab.run(&["run", "plan.yaml", "-q", "--jobs", "2"]));
    lab
}

/// Asserts the properties of every page: it sends no requests, and can be read by keyboard and screen
/// reader.
pub fn is_sound(page: &Page) {
    let text = &page.text;
    // Texts are escaped, so every `<` opens a tag.
    let tags = || text.split('<').skip(1).map(|rest| rest.split('>').next().unwrap());
    for tag in tags() {
        assert!(!tag.contains("src=\""), "{tag}");
        let targets = Page::between(tag, "href=\"", "\"");
        assert!(targets.iter().all(|target| target.starts_with('#')), "{tag}");
        let names: String = tag.split('"').step_by(2).collect();
        assert!(!names.split(' ').any(|name| name.starts_with("on")), "{tag}");
    }
    for word in ["@import", "url(", "<link", "<iframe", "<img", "<object", "javascript:"] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(text.contains("default-src 'none'"));
    assert_eq!(text.matches("<script").count(), 1);
    assert!(text.len() < 5_000_000);
    for strip in Page::between(text, "<figure class=\"strip\"", "</figure>") {
        for part in ["<figcaption>", "role=\"img\"", "aria-label=\"Run "] {
            assert_eq!(strip.matches(part).count(), 1, "{part} in {strip}");
        }
    }
    let figures = Page::between(text, "<figure id", "</figure>");
    for figure in &figures {
        for part in ["<figcaption>", "<h4", "role=\"img\"", "<details>", "<table>"] {
            assert_eq!(figure.matches(part).count(), 1, "{part} in {}", &figure[..figure.len().min(400)]);
        }
        // A timeline shows no metric.
        let defined = usize::from(!figure.starts_with("=\"timeline"));
        assert_eq!(figure.matches("What is ").count(), defined, "{}", &figure[..figure.len().min(400)]);
        assert!(figure.contains("<title>"), "values show on hover");
        assert!(!figure.contains("NaN") && !figure.contains("inf,"), "{figure}");
    }
    let ids: Vec<&str> = Page::between(text, " id=\"", "\"");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "each id occurs once: {ids:?}");
    let named = ["aria-labelledby=\"", "aria-describedby=\"", "href=\"#"];
    for id in named.iter().flat_map(|attribute| Page::between(text, attribute, "\"")) {
        assert!(unique.contains(id), "{id} is referenced, but missing");
    }
    // Headings are in order: none is more than one level deeper than the previous one.
    let mut last = 0;
    for level in text.split("<h").skip(1).filter_map(|rest| rest.chars().next()?.to_digit(10)) {
        assert!(level <= last + 1, "h{level} follows h{last}");
        last = level;
    }
}

/// Returns the Chromium of this machine; `None` in the plain suite, or if it is not installed.
pub fn browser() -> Option<&'static str> {
    if !super::is_whole() {
        return None;
    }
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    if found.is_none() {
        eprintln!("skipped: no Chromium is installed, so the page was not opened in a browser");
    }
    found
}

/// Returns the DOM that a browser builds for an address, without console messages. The browser cannot
/// reach other machines. `None` if it does not work.
pub fn dom_of(browser: &str, url: &str) -> Option<String> {
    let folder = crate::folder();
    // A browser that hangs is killed together with its child processes.
    let output = Command::new("timeout")
        .args(["--kill-after=5", "120", browser])
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--enable-logging=stderr", "--dump-dom", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(url)
        .output()
        .unwrap();
    let (dom, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("CONSOLE"), "{said}");
    if dom.trim().is_empty() {
        eprintln!("skipped: {browser} does not work ({}), so the page was not opened in it", output.status);
        return None;
    }
    Some(dom.into_owned())
}

/// Loads a page in Chromium: its script runs without errors. Skipped if Chromium is not installed.
pub fn in_a_browser(page: &Path) {
    let Some(browser) = browser() else { return };
    let Some(dom) = dom_of(browser, &format!("file://{}", page.display())) else { return };
    assert!(dom.contains("class=\"save\"") && !dom.contains("class=\"save\" hidden"), "the script of the page ran");
}
