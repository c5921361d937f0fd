//! Tests that there is no cycle of files: to understand one file, readers must not have to read a second
//! file that depends on the first.
//!
//! An arrow goes from a file to the file that defines an item which the first file names by path, either in
//! a `use`, including through a `pub use` of a third file, or inside its code. Parent and child count as
//! separate files. Tests are excluded, and so is a bare `mod name;`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The groups of files (rooms) inside modules, each with the rooms whose items its files may name. This is
/// the table in ARCHITECTURE.md. Files directly in the module may use every room, but no room may use
/// them.
const ROOMS: [(&str, &str, &[&str]); 10] = [
    ("plan", "text", &[]),
    ("plan", "diagnostic", &["text"]),
    ("plan", "model", &["text", "diagnostic"]),
    ("plan", "syntax", &["text", "diagnostic", "model"]),
    ("plan", "template", &["text", "diagnostic"]),
    ("plan", "matrix", &["text", "model"]),
    ("plan", "read", &["text", "diagnostic", "model"]),
    ("plan", "files", &["text", "diagnostic", "model", "syntax", "template", "read"]),
    ("plan", "check", &["text", "diagnostic", "model", "template", "matrix", "read"]),
    ("plan", "schema", &["model"]),
];

/// A piece of source: a name, `::`, or another character.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Colons,
    Other(char),
}

/// Returns the tokens of a source without comments, strings and characters.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |index: usize| chars.get(index).copied().unwrap_or('\0');
    let (mut found, mut i) = (Vec::new(), 0);
    while i < chars.len() {
        let c = chars[i];
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && chars[i] != '\n' {
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            i += 2;
            while i < chars.len() && !(chars[i] == '*' && at(i + 1) == '/') {
                i += 1;
            }
            i += 2;
        } else if c == '"' {
            i = after_string(&chars, i + 1);
        } else if c == '\'' {
            // A character, or a lifetime.
            if at(i + 1) == '\\' {
                i += 3;
                while i < chars.len() && chars[i - 1] != '\'' {
                    i += 1;
                }
                i += usize::from(at(i) == '\'');
            } else {
                i += if at(i + 2) == '\'' { 3 } else { 1 };
            }
        } else if c.is_alphabetic() || c == '_' {
            let start = i;
            while i < chars.len() && (chars[i].is_alphanumeric() || chars[i] == '_') {
                i += 1;
            }
            let name: String = chars[start..i].iter().collect();
            let hashes = chars[i..].iter().take_while(|c| **c == '#').count();
            if matches!(name.as_str(), "r" | "br") && at(i + hashes) == '"' {
                i = after_raw(&chars, i + hashes + 1, hashes);
            } else {
                found.push(Token::Name(name));
            }
        } else if c == ':' && at(i + 1) == ':' {
            found.push(Token::Colons);
            i += 2;
        } else {
            if !c.is_whitespace() {
                found.push(Token::Other(c));
            }
            i += 1;
        }
    }
    found
}

fn after_string(chars: &[char], mut i: usize) -> usize {
    while i < chars.len() && chars[i] != '"' {
        i += if chars[i] == '\\' { 2 } else { 1 };
    }
    i + 1
}

fn after_raw(chars: &[char], mut i: usize, hashes: usize) -> usize {
    let is_end =
        |i: usize| chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    while i < chars.len() && !is_end(i) {
        i += 1;
    }
    i + 1 + hashes
}

/// Returns the index after the bracket that closes the one at `open`.
fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Other('{' | '[' | '(') => depth += 1,
            Token::Other('}' | ']' | ')') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// Removes the items that are compiled for tests only.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let name = |index: usize, name: &str| matches!(tokens.get(index), Some(Token::Name(found)) if found == name);
    let other = |index: usize, other: char| tokens.get(index) == Some(&Token::Other(other));
    let (mut kept, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        let is_test =
            other(i, '#') && other(i + 1, '[') && name(i + 2, "cfg") && name(i + 4, "test") && other(i + 5, ')');
        if !is_test {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        while other(i, '#') {
            i = closed(tokens, i + 1);
        }
        while i < tokens.len() && !other(i, ';') && !other(i, '{') {
            i = if other(i, '(') || other(i, '[') { closed(tokens, i) } else { i + 1 };
        }
        i = if other(i, '{') { closed(tokens, i) } else { i + 1 };
    }
    kept
}

/// A name that a file imports, as in `use path as name`; `*` stands for a whole module.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    is_public: bool,
    path: Vec<String>,
    name: String,
}

/// The names that a file imports, uses by path, and defines.
#[derive(Debug, Default)]
struct Source {
    imports: Vec<Import>,
    paths: Vec<Vec<String>>,
    defines: BTreeSet<String>,
}

impl Source {
    fn read(text: &str) -> Source {
        const KINDS: [&str; 8] = ["struct", "enum", "fn", "trait", "type", "const", "static", "union"];
        let tokens = without_tests(&tokens(text));
        let mut source = Source::default();
        let mut i = 0;
        while i < tokens.len() {
            let Token::Name(word) = &tokens[i] else {
                i += 1;
                continue;
            };
            if word == "use" {
                let is_public = is_public(&tokens[..i]);
                i = tree(&tokens, i + 1, &[], &mut |path, name| {
                    source.imports.push(Import { is_public, path, name });
                });
                continue;
            }
            if KINDS.contains(&word.as_str())
                && let Some(Token::Name(name)) = tokens.get(i + 1)
            {
                source.defines.insert(name.clone());
            }
            let mut path = vec![word.clone()];
            while let (Some(Token::Colons), Some(Token::Name(next))) = (tokens.get(i + 1), tokens.get(i + 2)) {
                path.push(next.clone());
                i += 2;
            }
            if path.len() > 1 {
                source.paths.push(path);
            }
            i += 1;
        }
        source
    }
}

/// Whether the next item is preceded by `pub` or `pub(…)`.
fn is_public(before: &[Token]) -> bool {
    let is_pub = |token: Option<&Token>| matches!(token, Some(Token::Name(name)) if name == "pub");
    if before.last() == Some(&Token::Other(')')) {
        let open = before.iter().rposition(|token| *token == Token::Other('('));
        return open.is_some_and(|open| open > 0 && is_pub(before.get(open - 1)));
    }
    is_pub(before.last())
}

/// Reads a tree of imports and reports each path with its local name; returns the index after it.
fn tree(tokens: &[Token], mut i: usize, before: &[String], tell: &mut impl FnMut(Vec<String>, String)) -> usize {
    let mut path = before.to_vec();
    loop {
        match tokens.get(i) {
            Some(Token::Name(word)) if word == "as" => {
                if let Some(Token::Name(name)) = tokens.get(i + 1) {
                    tell(whole(path), name.clone());
                }
                return i + 2;
            }
            Some(Token::Name(word)) => path.push(word.clone()),
            Some(Token::Other('*')) => {
                tell(path, "*".to_owned());
                return i + 1;
            }
            Some(Token::Other('{')) => {
                i += 1;
                while !matches!(tokens.get(i), None | Some(Token::Other('}'))) {
                    i = tree(tokens, i, &path, tell);
                    i += usize::from(tokens.get(i) == Some(&Token::Other(',')));
                }
                return i + 1;
            }
            Some(Token::Colons) => {}
            _ => {
                let path = whole(path);
                if let Some(name) = path.last().cloned() {
                    tell(path, name);
                }
                return i;
            }
        }
        i += 1;
    }
}

/// `a::self` means `a`.
fn whole(mut path: Vec<String>) -> Vec<String> {
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    path
}

/// The modules of a crate by their paths from its root.
struct Crate {
    modules: BTreeMap<Vec<String>, (String, Source)>,
}

impl Crate {
    /// Reads the files in a folder; `root` is the file of the crate itself.
    fn read(folder: &Path, root: &str) -> Crate {
        let mut files = Vec::new();
        super::architecture::sources(folder, &mut files);
        let mut modules = BTreeMap::new();
        for file in files {
            let relative = file.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            let is_of_tests = relative.contains("tests/") || relative.ends_with("tests.rs");
            if is_of_tests || (relative == "main.rs" && root != "main.rs") {
                continue;
            }
            let stem = relative.trim_end_matches(".rs");
            let path = if relative == root { "" } else { stem.trim_end_matches("/mod") };
            let path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            modules.insert(path, (relative, Source::read(&fs::read_to_string(&file).unwrap())));
        }
        Crate { modules }
    }

    /// Resolves a path written in a module to one from the root of the crate; `None` if the path leads out
    /// of the crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let (mut base, mut rest) = (module.to_vec(), path);
        match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                base.push(child.to_owned());
                let is_module = self.modules.contains_key(&base);
                base.pop();
                if !is_module {
                    return None;
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// Returns the module that defines the item at a path from the root.
    fn defining(&self, path: &[String], depth: usize) -> Vec<String> {
        let length = (0..=path.len()).rev().find(|length| self.modules.contains_key(&path[..*length])).unwrap_or(0);
        let (module, rest) = path.split_at(length);
        let Some((_, source)) = self.modules.get(module) else { return Vec::new() };
        let Some(name) = rest.first().filter(|_| depth < 10) else { return module.to_vec() };
        if source.defines.contains(name) {
            return module.to_vec();
        }
        // Children may also name the private imports of their module.
        for import in source.imports.iter().filter(|import| import.name == *name) {
            if let Some(mut target) = self.absolute(module, &import.path).filter(|target| target != path) {
                target.extend(rest[1..].iter().cloned());
                return self.defining(&target, depth + 1);
            }
        }
        for import in source.imports.iter().filter(|import| import.name == "*") {
            let Some(mut target) = self.absolute(module, &import.path) else { continue };
            target.push(name.clone());
            let defining = self.defining(&target, depth + 1);
            if self.modules.get(&defining).is_some_and(|(_, source)| source.defines.contains(name)) {
                return defining;
            }
        }
        module.to_vec()
    }

    /// For each file, returns the files whose items it names, each with one of the paths.
    fn arrows(&self) -> BTreeMap<&str, BTreeMap<&str, String>> {
        let mut arrows: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
        for (module, (file, source)) in &self.modules {
            let mut named: BTreeMap<&str, Vec<String>> = BTreeMap::new();
            let mut targets = Vec::new();
            for import in &source.imports {
                if let Some(target) = self.absolute(module, &import.path) {
                    named.insert(&import.name, target.clone());
                    // A re-export is not an arrow.
                    if !import.is_public {
                        targets.push(target);
                    }
                }
            }
            for path in &source.paths {
                let of_import = named.get(path[0].as_str()).map(|target| [target, &path[1..]].concat());
                targets.extend(of_import.or_else(|| self.absolute(module, path)));
            }
            let from = arrows.entry(file.as_str()).or_default();
            for target in targets {
                let defining = self.defining(&target, 0);
                if let Some((other, _)) = self.modules.get(&defining).filter(|(other, _)| other != file) {
                    from.entry(other.as_str()).or_insert_with(|| target.join("::"));
                }
            }
        }
        arrows
    }
}

/// Returns the sets of files that all reach each other, starting with the smallest.
fn circles<'a>(arrows: &BTreeMap<&'a str, BTreeMap<&'a str, String>>) -> Vec<BTreeSet<&'a str>> {
    let reached = |from: &'a str| {
        let (mut found, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            let targets = arrows.get(file).into_iter().flat_map(BTreeMap::keys).copied();
            next.extend(targets.filter(|target| found.insert(*target)));
        }
        found
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = arrows.keys().map(|file| (*file, reached(file))).collect();
    let mut found = BTreeSet::new();
    for (file, reach) in &all {
        let circle: BTreeSet<&str> =
            reach.iter().filter(|other| all.get(*other).is_some_and(|back| back.contains(file))).copied().collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(BTreeSet::len);
    found
}

/// Returns the folder that all files share.
fn common(files: &BTreeSet<&str>) -> String {
    let folders = |file: &str| file.split('/').map(str::to_owned).collect::<Vec<_>>();
    let mut files = files.iter().map(|file| folders(file));
    let first = files.next().unwrap_or_default();
    let shared = files
        .fold(first.len() - 1, |shared, file| shared.min(first.iter().zip(&file).take_while(|(a, b)| a == b).count()));
    first[..shared].join("/")
}

#[test]
fn there_is_no_circle_of_files() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut crates = vec![("src".to_owned(), Crate::read(&here.join("src"), "lib.rs"))];
    for bench in fs::read_dir(here.join("benches")).unwrap() {
        let path = bench.unwrap().path();
        if path.is_dir() {
            let name = format!("benches/{}", path.file_name().unwrap().to_str().unwrap());
            crates.push((name, Crate::read(&path, "main.rs")));
        }
    }
    let mut text = String::new();
    for (root, one) in &crates {
        let arrows = one.arrows();
        for circle in circles(&arrows) {
            writeln!(text, "{root}/{}, {} files", common(&circle), circle.len()).unwrap();
            for (from, targets) in arrows.iter().filter(|(from, _)| circle.contains(*from)) {
                for (to, path) in targets.iter().filter(|(to, _)| circle.contains(*to)) {
                    writeln!(text, "    {from} → {to} ({path})").unwrap();
                }
            }
        }
    }
    assert!(text.is_empty(), "{text}");
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let source = Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "lib.rs");
    let modules: BTreeSet<&str> = ROOMS.iter().map(|(module, ..)| *module).collect();
    let room_of = |file: &str| -> Option<(String, String)> {
        let mut parts = file.split('/');
        let (module, room, below) = (parts.next()?, parts.next()?, parts.next());
        let room = if below.is_some() { room } else { "" };
        modules.contains(module).then(|| (module.to_owned(), room.to_owned()))
    };
    let mut wrong = String::new();
    for (from, targets) in source.arrows() {
        let Some((module, room)) = room_of(from).filter(|(_, room)| !room.is_empty()) else { continue };
        let Some((_, _, may)) = ROOMS.iter().find(|(of, name, _)| *of == module && *name == room) else {
            panic!("src/{module}/{room} is not in the table of rooms");
        };
        for (to, path) in targets {
            let Some((_, other)) = room_of(to).filter(|(of, other)| *of == module && *other != room) else { continue };
            if !may.contains(&other.as_str()) {
                writeln!(wrong, "src/{from} names {path} of src/{to}, which {module}/{room} may not").unwrap();
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_rooms_are_those_in_the_architecture_page() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    for (module, room, may) in ROOMS {
        let may = if may.is_empty() { "nothing".to_owned() } else { may.join(", ") };
        let row = format!("| {module}/{room} | {may} |");
        assert!(page.contains(&row), "ARCHITECTURE.md has no row `{row}`");
    }
}

#[test]
fn imports_of_every_form_are_read() {
    let source = Source::read(
        r##"
        // use crate::no::Comment;
        pub(crate) use super::a::{B as C, d::{self, E}, f::*};
        use crate::g;
        const TEXT: &str = r#"use crate::no::Text;"#;
        fn x<'a>() -> char { let y = g::h(self::i::J); '"' }
        #[cfg(test)]
        mod tests { use crate::no::Test; }
        #[cfg(test)]
        #[path = "z.rs"]
        mod more;
        pub use k::L;
        "##,
    );
    let imports: Vec<String> = source
        .imports
        .iter()
        .map(|import| {
            format!("{}{} as {}", if import.is_public { "pub " } else { "" }, import.path.join("::"), import.name)
        })
        .collect();
    assert_eq!(
        imports,
        [
            "pub super::a::B as C",
            "pub super::a::d as d",
            "pub super::a::d::E as E",
            "pub super::a::f as *",
            "crate::g as g",
            "pub k::L as L",
        ]
    );
    let paths: Vec<String> = source.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, ["g::h", "self::i::J"]);
    assert_eq!(source.defines.into_iter().collect::<Vec<_>>(), ["TEXT", "x"]);
}

#[test]
fn arrows_lead_to_where_an_item_is_defined() {
    let module = |path: &str, text: &str| {
        let path: Vec<String> = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let file = if path.is_empty() { "lib.rs".to_owned() } else { format!("{}.rs", path.join("/")) };
        (path, (file, Source::read(text)))
    };
    let one = Crate {
        modules: BTreeMap::from([
            module("", "pub mod a; pub mod b;"),
            module("a", "mod inner; pub use inner::Thing; pub use deep::*; mod deep; pub fn own() {}"),
            module("a::inner", "pub struct Thing; fn f() { super::own() }"),
            module("a::deep", "pub enum Deep {} use crate::b::g;"),
            module("b", "use crate::a::{Deep, Thing as T}; pub fn g() { T::new(); std::mem::drop(1) }"),
        ]),
    };
    let arrows = one.arrows();
    let of = |file: &str| arrows[file].keys().copied().collect::<Vec<_>>();
    assert_eq!(of("b.rs"), ["a/deep.rs", "a/inner.rs"]);
    assert_eq!(of("a/inner.rs"), ["a.rs"]);
    assert_eq!(of("a.rs"), [] as [&str; 0], "a re-export is not an arrow");
    let circles = circles(&arrows);
    assert_eq!(circles, [BTreeSet::from(["a/deep.rs", "b.rs"])]);
    assert_eq!(common(&circles[0]), "");
    assert_eq!(common(&BTreeSet::from(["x/y/a.rs", "x/y/z/b.rs"])), "x/y");
}
