//! Tests pages in a real browser: Chromium through playwright-core, checked by axe-core. Both packages
//! come from npm (`.ci/run` installs them into `SWEEPLINE_TEST_NODE`). If anything is missing, the
//! tests are skipped with a message.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The widths of a phone, a tablet and a desktop.
const WIDTHS: [&str; 3] = ["360", "768", "1280"];

/// Returns Chromium, looking for all names that distributions use; `None` in the plain suite, because a
/// browser takes seconds to open a page. The measured suite runs the same tests again with it.
pub fn chromium() -> Option<PathBuf> {
    if !super::is_whole() {
        return None;
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&paths).collect();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let path = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    names.into_iter().find_map(path)
}

/// Asserts that a page works at every width, in light and dark mode: no console messages, no other
/// resource loaded, nothing wider than the screen, no serious finding of axe-core, and all controls usable
/// by keyboard.
pub fn is_sound(page: &Path) {
    let modules = std::env::var_os("SWEEPLINE_TEST_NODE").map(|folder| PathBuf::from(folder).join("node_modules"));
    let has = |modules: &PathBuf| modules.join("playwright-core").is_dir() && modules.join("axe-core").is_dir();
    let (Some(modules), Some(chromium)) = (modules.filter(has), chromium()) else {
        eprintln!("skipped: Chromium, or playwright-core and axe-core below SWEEPLINE_TEST_NODE, are not installed");
        return;
    };
    let url = format!("file://{}", page.display());
    // A browser that hangs is killed together with its child processes.
    let output = Command::new("timeout")
        .args(["--kill-after=5", "240", "node", concat!(env!("CARGO_MANIFEST_DIR"), "/browser.cjs")])
        .args([&modules, &chromium])
        .arg(&url)
        .args(WIDTHS)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() && said.contains("Failed to launch") {
        eprintln!("skipped: {} does not start:\n{said}", chromium.display());
        return;
    }
    assert!(output.status.success(), "{said}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |name: &str| -> Vec<String> { serde_json::from_value(found[name].clone()).unwrap() };
    assert_eq!(list("said"), Vec::<String>::new(), "on the console");
    assert!(list("requests").iter().all(|request| *request == url), "{:?}", list("requests"));
    assert_eq!(list("wide"), Vec::<String>::new(), "wider than the screen");
    assert_eq!(list("findings"), Vec::<String>::new(), "axe-core, serious or critical");
    let focused = list("focused");
    assert!(focused.first().is_some_and(|first| first.contains("Skip to the answer")), "{focused:?}");
    assert!(focused.len() > 20, "Tab reaches links and buttons: {focused:?}");
    assert_eq!(list("unseen"), Vec::<String>::new(), "focus is visible");
    assert_eq!(found["opened"], true, "Enter opens folded parts");
}
