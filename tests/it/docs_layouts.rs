//! Checks that docs/ shows the actual layouts of a results folder and of a store.

use std::path::Path;

use lab::Lab;
use lab::pages::block;
use lab::sweeps::{PLAN, honest};

/// Paths below `results/` that commands other than `run` create, and the modules that test them.
const OTHERS: [(&str, &str); 2] = [("calibrations/", "calibrate"), ("servers/", "launch")];

/// Returns a results folder with one run that has every kind of file.
fn measured() -> Lab {
    let lab = Lab::new();
    lab.write("plan.yaml", &format!("{}record: {{ text: true }}\n", PLAN.trim_start()));
    honest(&lab.run(&["run", "plan.yaml", "-q", "--only", "batch_size == 1"]));
    lab
}

/// Returns the files below a folder, relative to it.
fn files(folder: &Path, below: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join(below)).unwrap().map(|entry| entry.unwrap());
    let of = |entry: std::fs::DirEntry| {
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() { files(folder, &format!("{name}/")) } else { vec![name] }
    };
    entries.flat_map(of).collect()
}

#[test]
fn a_results_folder_has_the_layout_of_the_docs() {
    let lab = measured();
    let (id, run) = lab.runs().pop_first().unwrap();
    let mut seen = 0;
    for line in block("docs/COMMANDS.md", "results/runs/<id>/run.json").lines {
        let path = line.split("  ").next().unwrap();
        let in_run = || line.trim_start().split("  ").next().filter(|name| name.ends_with(".parquet"));
        let (path, is_there) = match path.strip_prefix("results/") {
            Some(path) => (path, lab.results().join(path.replace("<id>", &id)).exists()),
            // All other lines continue a description.
            None => match in_run() {
                Some(name) => (name, run.dir.join(name).exists()),
                None => continue,
            },
        };
        let other = OTHERS.iter().find(|(other, _)| *other == path);
        let is_tested = other.is_some_and(|(path, module)| {
            let test = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/{module}.rs"));
            std::fs::read_to_string(test).unwrap().contains(path.trim_end_matches('/'))
        });
        assert!(is_there || is_tested, "{line}: {:?}", files(&lab.results(), ""));
        seen += 1;
    }
    assert_eq!(seen, 11, "paths in docs/COMMANDS.md");
}

/// The layout shows every object that `push` writes.
#[test]
fn a_store_has_the_layout_of_the_docs() {
    let lab = measured();
    lab.ok(&["push", &format!("file://{}", lab.path().join("store").display()), "--plan", "plan.yaml"]);
    let layout = block("docs/SHARING.md", "runs/<id>.json").lines;
    let layout: Vec<&str> = layout.iter().map(|line| line.split("  ").next().unwrap()).collect();
    let hex = |part: &str| part.chars().all(|c| c.is_ascii_hexdigit());
    let fits = |object: &str, path: &str| {
        let (parts, names): (Vec<&str>, Vec<&str>) = (object.split('/').collect(), path.split('/').collect());
        let is_part = |(part, name): (&&str, &&str)| match *name {
            "<id>" => part.len() == 16 && hex(part),
            "<digest>" => part.len() == 64 && hex(part),
            "<id>.json" => part.strip_suffix(".json").is_some_and(|id| id.len() == 16 && hex(id)),
            "<file>" => part.ends_with(".parquet"),
            name => *part == name,
        };
        parts.len() == names.len() && parts.iter().zip(&names).all(is_part)
    };
    let objects = files(&lab.path().join("store"), "");
    assert!(objects.len() >= 5, "{objects:?}");
    for object in objects {
        assert!(layout.iter().any(|path| fits(&object, path)), "{object}: {layout:?}");
    }
}
