//! A real terminal, through tmux, which shows the program's output as users see it.

use std::process::Command;

use super::{Lab, path_with_program, wait_for};

/// A terminal in which a program runs; it is closed on drop.
pub struct Terminal {
    socket: String,
}

impl Terminal {
    /// Runs the program in a terminal of this width; `None` if there is no tmux. The last line of its
    /// output is `ended with CODE`.
    pub fn start(lab: &Lab, args: &[&str], columns: u16) -> Option<Terminal> {
        let has_tmux = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
        if !has_tmux {
            eprintln!("skipped: tmux is not installed");
            return None;
        }
        let socket = lab.path().join("tmux").to_str().unwrap().to_owned();
        let program = format!("sweepline {}; echo ended with $?; exec sleep 1000", args.join(" "));
        let columns = columns.to_string();
        let terminal = Terminal { socket };
        let size = ["-x", &columns, "-y", "50", &program];
        // On a busy machine, tmux's server may exit before its client has connected ("server exited
        // unexpectedly").
        wait_for("a terminal of tmux", || {
            let begun = terminal.tmux(&[&["-f", "/dev/null", "new-session", "-d"], &size[..]].concat(), Some(lab));
            if !begun.status.success() {
                eprintln!("tmux: {}", String::from_utf8_lossy(&begun.stderr));
            }
            begun.status.success().then_some(())
        });
        Some(terminal)
    }

    fn tmux(&self, args: &[&str], lab: Option<&Lab>) -> std::process::Output {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .env_remove("NO_COLOR")
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8");
        if let Some(lab) = lab {
            command.current_dir(lab.path()).env("PATH", path_with_program());
            lab.set_time(&mut command);
        }
        command.output().unwrap()
    }

    /// Whether the terminal shows its alternate screen, which leaves no trace in the scrollback.
    pub fn is_on_other_screen(&self) -> bool {
        let answer = self.tmux(&["display-message", "-p", "#{alternate_on}"], None).stdout;
        String::from_utf8(answer).unwrap().trim() == "1"
    }

    /// Presses a key: `C-c`, `q`.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", key], None);
    }

    /// Returns the screen, rejoining lines that the terminal wrapped, so that they are as the program
    /// wrote them.
    pub fn unbroken(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p", "-J"], None).stdout).unwrap()
    }

    /// Returns the screen, optionally with color sequences.
    pub fn screen(&self, colour: bool) -> String {
        let flags: &[&str] = if colour { &["capture-pane", "-p", "-e"] } else { &["capture-pane", "-p"] };
        String::from_utf8(self.tmux(flags, None).stdout).unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"], None);
    }
}
