//! Other programs that read exported files.

use std::path::PathBuf;
use std::process::Command;

use super::{Ended, Lab};

/// Returns LibreOffice; `None`, with a message, if it is not installed.
pub fn office() -> Option<&'static str> {
    let found = ["soffice", "libreoffice"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success()));
    if found.is_none() {
        eprintln!("skipped: LibreOffice is not installed");
    }
    found
}

/// Opens the workbook, recalculates it, and saves it as a workbook again.
pub fn recalculated(lab: &Lab, office: &str, book: &str) -> PathBuf {
    let profile = format!("-env:UserInstallation=file://{}", lab.path().join("office").display());
    let out = lab.path().join("recalculated");
    let convert = ["--headless", "--norestore", "--convert-to", "xlsx:Calc MS Excel 2007 XML", "--outdir"];
    let mut command = Command::new(office);
    command.arg(profile).args(convert).arg(&out).arg(lab.path().join(book)).env("HOME", lab.path());
    let ended = Ended::from(command.output().unwrap());
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    out.join(book)
}

/// Returns a Python with DuckDB, pyarrow and openpyxl; `None`, with a message, if there is none.
pub fn python() -> Option<PathBuf> {
    let venv = std::env::var_os("SWEEPLINE_TEST_VENV").map(PathBuf::from);
    let venv = venv.unwrap_or_else(|| super::root().join("target/test-venv"));
    let python = venv.join("bin/python");
    let found = Command::new(&python).args(["-c", "import duckdb, openpyxl, pyarrow"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    let text = format!("{} has no DuckDB, pyarrow and openpyxl; `.ci/run` makes such a venv", python.display());
    let required = std::env::var_os("SWEEPLINE_REQUIRE_READERS").is_some_and(|value| value == "1");
    assert!(!required, "{text}");
    eprintln!("skipped: {text}");
    None
}
