//! Tests the integration with shells: completions that bash itself accepts, and manual pages that groff
//! formats.

use std::io::Write;
use std::process::{Command, Stdio};

use lab::{Ended, Lab};

/// Whether a program is installed; if not, prints a message for the tests that need it.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let has = found.is_ok_and(|status| status.success());
    if !has {
        eprintln!("skipped: {program} is not installed");
    }
    has
}

/// Returns bash's completions for a line that ends at the cursor.
fn completed(lab: &Lab, line: &str) -> Vec<String> {
    let words: Vec<String> = line.split(' ').map(|word| format!("'{word}'")).collect();
    // The function is found in the same way as bash finds it, from the completion that is
    // registered for the program.
    let script = format!(
        "source completions.bash || exit 1\n\
         COMP_WORDS=({words}) COMP_CWORD={last} COMP_LINE='{line}' COMP_POINT={point} COMP_TYPE=9 COMP_KEY=9\n\
         function=$(complete -p sweepline | sed -n 's/.*-F \\([^ ]*\\).*/\\1/p')\n\
         \"$function\" sweepline \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words = words.join(" "),
        last = words.len() - 1,
        point = line.len(),
    );
    let bash = Command::new("bash").args(["--norc", "-c", &script]).current_dir(lab.path()).output().unwrap();
    let ended = Ended::from(bash);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{line}");
    ended.stdout.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_flags_values_and_files() {
    let lab = Lab::new();
    if !has("bash") {
        return;
    }
    lab.write("completions.bash", &lab.ok(&["completions", "bash"]).stdout);
    lab.write("nightly.yaml", "");
    assert_eq!(completed(&lab, "sweepline pre"), ["preview"]);
    assert_eq!(completed(&lab, "sweepline verif"), ["verify"]);
    let run = completed(&lab, "sweepline run --fa");
    assert_eq!(run, ["--fail-fast"]);
    assert_eq!(completed(&lab, "sweepline graph --format m"), ["mermaid"]);
    assert_eq!(completed(&lab, "sweepline export --output nigh"), ["nightly.yaml"]);
    // Plans are arguments without a flag, which are left to bash's own completion of file names.
    assert!(lab.ok(&["completions", "bash"]).stdout.contains("-o bashdefault -o default sweepline"));
    let all = completed(&lab, "sweepline ");
    for command in lab.ok(&["--help"]).stdout.split("Commands:\n").nth(1).unwrap().lines() {
        let Some(name) = command.split_whitespace().next() else { break };
        assert!(all.iter().any(|offer| offer == name), "{name} is not in {all:?}");
    }
}

#[test]
fn every_shell_gets_a_script_of_its_own() {
    let lab = Lab::new();
    let heads = [
        ("bash", "_sweepline() {"),
        ("zsh", "#compdef sweepline"),
        ("fish", "complete -c sweepline"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "set edit:completion:arg-completer[sweepline]"),
    ];
    for (shell, head) in heads {
        let script = lab.ok(&["completions", shell]).stdout;
        assert!(script.contains(head) && script.contains("preview"), "{shell}: {script}");
    }
    assert_eq!(lab.run(&["completions", "tcsh"]).code, Some(2));
    assert_eq!(lab.run(&["completions"]).code, Some(2));
}

/// Returns a page as `man` shows it, without the terminal's bold sequences; warnings of groff count as
/// errors in the page.
fn set(page: &str) -> String {
    let mut groff = Command::new("groff")
        .args(["-Kutf8", "-man", "-Tutf8", "-ww", "-P-cbou"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = groff.stdin.take().unwrap();
    let page = page.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(page.as_bytes()));
    let ended = Ended::from(groff.wait_with_output().unwrap());
    writer.join().unwrap().unwrap();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    // groff adds spaces between words to fill the line.
    ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_manual_has_a_page_for_the_program_and_for_each_command() {
    let lab = Lab::new();
    lab.ok(&["man", "--output", "share/man1"]);
    let page = |name: &str| std::fs::read_to_string(lab.path().join(format!("share/man1/{name}.1"))).unwrap();
    let program = page("sweepline");
    assert_eq!(lab.ok(&["man"]).stdout, program);
    assert!(program.starts_with(".ie \\n(.g .ds Aq") && program.contains(".TH sweepline 1 "), "{program}");
    let help = lab.ok(&["--help"]).stdout;
    let commands: Vec<&str> = help
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .lines()
        .map_while(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    let parts = ["inspect", "convert", "sample", "profile"].map(|part| format!("dataset-{part}"));
    assert_eq!(std::fs::read_dir(lab.path().join("share/man1")).unwrap().count(), commands.len() + 1 + parts.len());
    for part in parts {
        assert_eq!(lab.ok(&["man", &part]).stdout, page(&format!("sweepline-{part}")));
    }
    let groff = has("groff");
    for name in commands {
        let text = page(&format!("sweepline-{name}"));
        assert_eq!(lab.ok(&["man", name]).stdout, text);
        assert!(text.contains(&format!(".TH sweepline-{name} 1 ")) && text.contains("EXIT STATUS"), "{text}");
        assert!(program.contains(&format!("sweepline\\-{name}(1)")), "{name} is not in the program's page");
        if groff {
            let set = set(&text);
            assert!(set.contains(&format!("sweepline {name}")) && set.contains("OPTIONS"), "{set}");
        }
    }
    if groff {
        let run = set(&page("sweepline-run"));
        for words in ["--fail-fast", "Stop at the first run that fails", "The results folder is locked"] {
            assert!(run.contains(words), "{words}: {run}");
        }
    }
    let unknown = lab.run(&["man", "nonsense"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("unknown command `nonsense`"), "{}", unknown.stderr);
    lab.write("file", "");
    assert_eq!(lab.run(&["man", "--output", "file"]).code, Some(1), "a folder that cannot be created");
}
