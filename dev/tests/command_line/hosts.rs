// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `baton` with a running host.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bundle::Bundle;
use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, tcgetattr};

use crate::operator::Operator;

type Rule = (&'static str, fn());

pub const RULES: &[Rule] = &[
    ("up_shows_host_and_guest_and_ends_with_them", up_shows_host_and_guest_and_ends_with_them),
    ("a_panic_is_a_status_of_its_own", a_panic_is_a_status_of_its_own),
    ("a_host_that_does_not_end_is_ended_at_the_timeout", a_host_that_does_not_end_is_ended_at_the_timeout),
    ("the_demo_wants_its_greeting", the_demo_wants_its_greeting),
    ("a_detached_host_is_operated_from_elsewhere", a_detached_host_is_operated_from_elsewhere),
    ("guests_are_shut_down_or_stopped_at_the_timeout", guests_are_shut_down_or_stopped_at_the_timeout),
    ("cpus_are_listed_and_taken_offline_and_online", cpus_are_listed_and_taken_offline_and_online),
    ("a_console_is_typed_on_by_a_script", a_console_is_typed_on_by_a_script),
    ("a_terminal_is_the_guests_until_it_is_left_and_then_itself_again", a_terminal_is_the_guests_until_it_is_left),
    ("a_terminal_is_itself_again_after_a_signal", a_terminal_is_itself_again_after_a_signal),
    ("records_are_followed_to_the_end", records_are_followed_to_the_end),
    ("a_detached_host_that_fails_shows_its_last_lines", a_detached_host_that_fails_shows_its_last_lines),
    ("a_host_that_does_not_go_is_ended_by_force", a_host_that_does_not_go_is_ended_by_force),
    ("bad_settings_are_named_with_the_hint", bad_settings_are_named_with_the_hint),
    ("a_bundle_is_written", a_bundle_is_written),
    ("a_core_has_its_name_once_it_is_whole", a_core_has_its_name_once_it_is_whole),
    ("an_interrupted_dump_leaves_a_guest_that_goes_on_and_no_file", an_interrupted_dump_leaves_no_file),
    ("a_tool_that_is_killed_takes_the_emulator_along", a_tool_that_is_killed_takes_the_emulator_along),
    ("output_that_nobody_reads_ends_the_tool_quietly", output_that_nobody_reads_ends_the_tool_quietly),
];

fn up_shows_host_and_guest_and_ends_with_them() {
    let operator = Operator::new("greet");
    let said = operator.says(&["up", "host.toml"]);
    let mut lines: Vec<_> = said.out.lines().collect();
    assert_eq!((said.status, lines.pop()), (0, Some("baton  │ the host ended well")), "{}{}", said.out, said.err);
    // Two serial lines carry these: which is read first is free.
    lines.sort_unstable();
    assert_eq!(lines, ["debian │ Hello from a guest of Baton", "host   │ a host with \"greet\""]);
    assert_eq!(operator.left_behind(), ["lock"]);
}

fn a_panic_is_a_status_of_its_own() {
    let said = Operator::new("panic").says(&["up", "host.toml"]);
    assert_eq!(said.status, 3);
    assert!(said.out.contains("host   │ panicked\nhost   │   #0 0x1\n"), "{}", said.out);
}

fn a_host_that_does_not_end_is_ended_at_the_timeout() {
    let started = Instant::now();
    let said = Operator::new("mute").says(&["up", "host.toml", "--timeout", "1"]);
    assert_eq!(said.status, 124);
    assert!(said.out.contains("baton  │ emulator: the emulator says something"), "{}", said.out);
    assert!(said.out.contains("still ran after 1 s and was ended; raise --timeout"), "{}", said.out);
    assert!(started.elapsed().as_secs() < 20);
}

fn the_demo_wants_its_greeting() {
    let said = Operator::new("greet").says(&["demo", "host.toml"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let said = Operator::new("poweroff").says(&["demo", "host.toml"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("without its greeting"), "{}", said.err);
}

fn a_detached_host_is_operated_from_elsewhere() {
    let operator = Operator::new("");
    let said = operator.says(&["up", "host.toml", "--detach"]);
    assert!(said.status == 0 && said.out.contains("in the background"), "{}{}", said.out, said.err);
    let said = operator.says(&["up", "host.toml"]);
    assert!(said.err.contains("runs already; end it with `baton down`"), "{}", said.err);
    let said = operator.says(&["info", "--json"]);
    assert!(said.out.starts_with("{\"version\":\"9.9.9\",\"image_bytes\":1048576,"), "{}{}", said.out, said.err);
    let said = operator.says(&["vm", "list"]);
    assert!(said.out.contains("debian  running  6 s  2      0,1  512 MiB  1234"), "{}{}", said.out, said.err);
    let said = operator.says(&["vm", "list", "--json"]);
    assert!(said.out.contains("\"state\":\"running\"") && said.out.contains("{\"kind\":\"cpuid\",\"count\":1234}"));
    assert_eq!(operator.says(&["vm", "pause", "debian"]).out, "debian paused\n");
    assert_eq!(
        operator.says(&["vm", "stop", "--yes", "debian", "--json"]).out,
        "{\"done\":\"stopped\",\"name\":\"debian\"}\n"
    );
    let said = operator.says(&["vm", "start", "debain"]);
    assert_eq!(said.err, "baton: there is no virtual machine \"debain\"; did you mean \"debian\"?\n");
    assert_eq!(operator.says(&["vm", "resume", "debian"]).err, "baton: debian runs already; pause it first\n");
    assert_eq!(operator.says(&["down", "--yes"]).out, "host \"default\" is off\n");
    assert_eq!(operator.left_behind(), ["lock", "up.log"]);
    let said = operator.says(&["vm", "list"]);
    assert_eq!(said.err, "baton: no host is running; `cargo baton up host.toml` starts one in an emulator\n");
}

fn guests_are_shut_down_or_stopped_at_the_timeout() {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["vm", "wait", "debian", "--timeout", "0"]);
    assert_eq!(said.status, 1);
    let hint = "`baton vm shutdown debian` asks it to";
    assert_eq!(said.err, format!("baton: guest debian has not ended within 0 s; {hint}\n"));
    let said = operator.says(&["vm", "shutdown", "debian"]);
    assert!(said.err.contains("shutdown ends guest debian") && said.err.contains("give --yes"), "{}", said.err);
    let said = operator.says(&["vm", "shutdown", "--yes", "debian", "debain"]);
    assert_eq!((said.status, said.err.contains("did you mean \"debian\"?")), (5, true), "{}", said.err);
    let said = operator.says(&["vm", "shutdown", "--yes", "debian", "debian"]);
    assert!(said.out.starts_with("debian shut down (powered off; ") && said.out.lines().count() == 1, "{}", said.out);
    let said = operator.says(&["vm", "shutdown", "debian"]);
    assert!(said.status == 0 && said.out.starts_with("debian stopped already (powered off; "), "{}", said.out);
    assert!(operator.says(&["vm", "wait", "debian"]).out.starts_with("debian ended (powered off; "));
    let said = operator.says(&["vm", "stop", "--yes", "--all"]);
    let nobody = "baton: no machine is in a state for that; `baton vm list` shows their states\n";
    assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, "", nobody));
    assert_eq!(operator.says(&["vm", "start", "--all"]).out, "debian started\n");
    assert_eq!(operator.says(&["vm", "start", "--all", "debian"]).status, 2);

    let operator = Operator::new("ignores");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["vm", "shutdown", "--yes", "--json", "--timeout", "1", "debian"]);
    let expected = "{\"done\":\"stopped: it did not shut down within 1 s\",\"name\":\"debian\",\"reason\":\"stopped by";
    assert!(said.status == 0 && said.out.starts_with(expected), "{}{}", said.out, said.err);
}

fn cpus_are_listed_and_taken_offline_and_online() {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["cpu", "list"]);
    let lines: Vec<String> =
        said.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "CPU APIC STATE BUSY VCPUS REASON",
        "0 0 online 21 % debian/0,debian/1",
        "1 2 leaving 100 %",
        "2 4 offline",
        "3 6 failed it did not come further than initialisation",
    ];
    assert_eq!(lines, expected, "{}", said.err);
    let said = operator.says(&["cpu", "list", "--json"]);
    let first = said.out.lines().next().expect("a line");
    assert_eq!(
        first,
        "{\"index\":0,\"apic_id\":0,\"state\":\"online\",\"reason\":null,\"busy_permille\":215,\
         \"vcpus\":[{\"vm\":\"debian\",\"vcpu\":0},{\"vm\":\"debian\",\"vcpu\":1}]}"
    );
    assert_eq!(said.out.lines().count(), 4, "every page");
    assert_eq!(operator.says(&["cpu", "offline", "1"]).out, "CPU 1 is offline\n");
    let said = operator.says(&["cpu", "online", "1", "--json"]);
    assert_eq!(said.out, "{\"cpu\":1,\"done\":\"online\"}\n");
    let said = operator.says(&["cpu", "offline", "0"]);
    let refused = "baton: CPU 0 serves the control channel; it stays; take another one offline\n";
    assert_eq!((said.status, said.err.as_str()), (4, refused));
    assert_eq!(operator.says(&["cpu", "offline", "one"]).status, 2);
}

fn a_console_is_typed_on_by_a_script() {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.types("uname -a\n", &["vm", "console", "debian", "--linger", "0.3"]);
    assert_eq!((said.status, said.out.as_str()), (0, "UNAME -A\n"), "{}", said.err);
    let said = operator.types("", &["vm", "console", "debian", "--linger", "0.3"]);
    assert_eq!(said.out, "UNAME -A\n", "the screen as it was left");
    let said = operator.types("", &["vm", "console", "other"]);
    assert!(said.err.contains("no virtual machine \"other\"; `baton vm list` shows"), "{}", said.err);
}

/// A terminal: the end at which one types, and the end of the program.
fn pseudoterminal() -> rustix::io::Result<(File, File)> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let terminal = open(&*ptsname(&master, Vec::new())?, flags, Mode::empty())?;
    Ok((master.into(), terminal.into()))
}

/// Connects a terminal to the guest's console, lets `leave` end that, and returns what was shown.
fn on_a_terminal(leave: impl FnOnce(&File, &Child)) -> String {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let (master, terminal) = pseudoterminal().expect("a terminal");
    let modes = || tcgetattr(&terminal).expect("a terminal");
    let before = modes();
    let stdin = terminal.try_clone().expect("cloned");
    let console = operator.start(operator.command(&["vm", "console", "debian"]).stdin(stdin));
    let is_raw = || !modes().local_modes.contains(LocalModes::ICANON);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_raw() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(is_raw());
    // Kept open: without it the terminal would be gone.
    leave(&master, &console);
    let output = console.wait_with_output().expect("ended");
    assert!(output.status.success());
    let shown = |modes: Termios| format!("{modes:?}");
    assert_eq!(shown(modes()), shown(before));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Ctrl-] leaves"));
    String::from_utf8(output.stdout).expect("text")
}

fn a_terminal_is_the_guests_until_it_is_left() {
    let shown = on_a_terminal(|mut master, _| {
        master.write_all(b"hello\x03\r").expect("typed");
        thread::sleep(Duration::from_millis(500));
        master.write_all(b"x\x1dy").expect("typed");
    });
    assert!(shown.starts_with("HELLO\x03\r"), "{shown:?}");
}

fn a_terminal_is_itself_again_after_a_signal() {
    on_a_terminal(|_, console| {
        kill_process(Pid::from_child(console), Signal::TERM).expect("sent");
    });
}

fn records_are_followed_to_the_end() {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["log"]);
    assert_eq!(said.out.lines().count(), 3, "{}{}", said.out, said.err);
    assert!(said.out.starts_with("[    0.000000] cpu0 info  boot: record 0\n"), "{}", said.out);
    let said = operator.says(&["events", "--json"]);
    assert_eq!(said.out, "{\"sequence\":0,\"time_ns\":5,\"kind\":\"host-ready\"}\n");
    let follower = operator.start(&mut operator.command(&["log", "-f", "--json"]));
    thread::sleep(Duration::from_millis(500));
    assert_eq!(operator.says(&["down", "--yes"]).status, 0);
    let output = follower.wait_with_output().expect("ended");
    let out = String::from_utf8(output.stdout).expect("text");
    let err = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "the end of the host is no success");
    assert!(err.contains("the host has ended") && err.contains("nothing more comes"), "{err}");
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.lines().all(|line| line.starts_with("{\"sequence\":")));
}

fn a_detached_host_that_fails_shows_its_last_lines() {
    let said = Operator::new("panic").says(&["up", "host.toml", "--detach"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("ended before it answered (status 3)"), "{}", said.err);
    assert!(said.err.contains("host   │ panicked"), "{}", said.err);
}

fn a_host_that_does_not_go_is_ended_by_force() {
    let operator = Operator::new("stubborn");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["down", "--yes", "--timeout", "1"]);
    assert_eq!(said.out, "host \"default\" did not power off within 1 s; it was ended by force\n", "{}", said.err);
    assert_eq!(operator.says(&["info"]).status, 6);
}

fn bad_settings_are_named_with_the_hint() {
    let operator = Operator::new("greet");
    let cases: [(&[&str], &str); 6] = [
        (&["up", "hots.toml"], "baton: hots.toml: cannot be read"),
        (&["up", "host.toml", "--image", "none.elf"], "the image none.elf does not exist; build it with `make`"),
        (&["up", "host.toml", "--qemu", "/none/qemu"], "\"/none/qemu\" cannot be started; install it, or name it with"),
        (&["up", "host.toml", "--memory", "96MiB"], "memory (96 MiB) is too little"),
        (&["up", "host.toml", "--memory", "2"], "is no size; write a whole number and a unit"),
        (&["up", "host.toml", "--name", "a/b"], "is no name for a host"),
    ];
    for (arguments, expected) in cases {
        let said = operator.says(arguments);
        assert!(said.status != 0 && said.err.contains(expected), "{arguments:?}: {}", said.err);
    }
}

fn a_bundle_is_written() {
    let operator = Operator::new("");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    let said = operator.says(&["bundle", "host.toml", "-o", path]);
    assert!(said.out.contains(": 1 guest, "), "{}{}", said.out, said.err);
    let bytes = fs::read(path).expect("written");
    assert_eq!(Bundle::parse(&bytes).expect("good").verify("vmlinuz"), Ok(&b"a kernel"[..]));
}

fn a_core_has_its_name_once_it_is_whole() {
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let said = operator.says(&["vm", "dump", "debian", "-o", "a.core"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(operator.has("a.core") && !operator.has("a.core.partial"));
    // The host's lines come by another way than its answers.
    until(|| operator.log().contains("held for "));
    until(|| operator.log().contains("resumed"));
}

fn an_interrupted_dump_leaves_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let operator = Operator::new("silent");
        assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
        let dump = operator.start(&mut operator.command(&["vm", "dump", "debian", "-o", "a.core"]));
        until(|| operator.has("a.core.partial"));
        kill_process(Pid::from_child(&dump), signal).expect("sent");
        let output = dump.wait_with_output().expect("ended");
        assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!operator.has("a.core") && !operator.has("a.core.partial"));
        until(|| operator.log().contains("resumed"));
    }
}

fn a_tool_that_is_killed_takes_the_emulator_along() {
    let operator = Operator::new("");
    let mut up = operator.start(&mut operator.command(&["up", "host.toml"]));
    until(|| operator.says(&["info"]).status == 0);
    let emulator = operator.emulator();
    assert!(is_alive(emulator));
    kill_process(Pid::from_child(&up), Signal::KILL).expect("sent");
    up.wait().expect("ended");
    until(|| !is_alive(emulator));
}

/// Returns whether a process runs: one that nobody has waited for does not.
fn is_alive(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "it does not come to that");
        thread::sleep(Duration::from_millis(20));
    }
}

fn output_that_nobody_reads_ends_the_tool_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let operator = Operator::new("");
    assert_eq!(operator.says(&["up", "host.toml", "--detach"]).status, 0);
    let commands: [&[&str]; 7] = [
        &["bench"],
        &["log"],
        &["log", "--follow"],
        &["events", "--json"],
        &["vm", "list"],
        &["info"],
        &["vm", "console", "debian", "--linger", "20"],
    ];
    for arguments in commands {
        let writer = writer.try_clone().expect("cloned");
        let mut command = operator.command(arguments);
        let mut child = operator.start(command.stdin(Stdio::piped()).stdout(writer));
        // What the console shows.
        let _ = child.stdin.take().expect("piped").write_all(b"typed\n");
        let output = child.wait_with_output().expect("ended");
        let said = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert_eq!(said, (Some(141), String::new()), "{arguments:?}");
    }
}
