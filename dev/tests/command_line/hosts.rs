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
    ("output_without_a_reader_ends_the_tool_quietly", output_without_a_reader_ends_the_tool_quietly),
];

fn up_shows_host_and_guest_and_ends_with_them() {
    let operator = Operator::new("greet");
    let output = operator.run(&["up", "host.toml"]);
    let mut lines: Vec<_> = output.out.lines().collect();
    assert_eq!((output.status, lines.pop()), (0, Some("baton  │ the host ended well")), "{}{}", output.out, output.err);
    // Two serial lines carry these: which is read first is free.
    lines.sort_unstable();
    assert_eq!(lines, ["debian │ Hello from a guest of Baton", "host   │ a host with \"greet\""]);
    assert_eq!(operator.left_behind(), ["lock"]);
}

fn a_panic_is_a_status_of_its_own() {
    let output = Operator::new("panic").run(&["up", "host.toml"]);
    assert_eq!(output.status, 3);
    assert!(output.out.contains("host   │ panicked\nhost   │   #0 0x1\n"), "{}", output.out);
}

fn a_host_that_does_not_end_is_ended_at_the_timeout() {
    let started = Instant::now();
    let output = Operator::new("mute").run(&["up", "host.toml", "--timeout", "1"]);
    assert_eq!(output.status, 124);
    assert!(output.out.contains("baton  │ emulator: the emulator reports something"), "{}", output.out);
    assert!(output.out.contains("still ran after 1 s and was ended; raise --timeout"), "{}", output.out);
    assert!(started.elapsed().as_secs() < 20);
}

fn the_demo_wants_its_greeting() {
    let output = Operator::new("greet").run(&["demo", "host.toml"]);
    assert_eq!(output.status, 0, "{}", output.err);
    let output = Operator::new("poweroff").run(&["demo", "host.toml"]);
    assert_eq!(output.status, 1);
    assert!(output.err.contains("without its greeting"), "{}", output.err);
}

fn a_detached_host_is_operated_from_elsewhere() {
    let operator = Operator::new("");
    let output = operator.run(&["up", "host.toml", "--detach"]);
    assert!(output.status == 0 && output.out.contains("in the background"), "{}{}", output.out, output.err);
    let output = operator.run(&["up", "host.toml"]);
    assert!(output.err.contains("runs already; end it with `baton down`"), "{}", output.err);
    let output = operator.run(&["info", "--json"]);
    assert!(output.out.starts_with("{\"version\":\"9.9.9\",\"image_bytes\":1048576,"), "{}{}", output.out, output.err);
    let output = operator.run(&["vm", "list"]);
    assert!(output.out.contains("debian  running  6 s  2      0,1  512 MiB  1234"), "{}{}", output.out, output.err);
    let output = operator.run(&["vm", "list", "--json"]);
    assert!(output.out.contains("\"state\":\"running\"") && output.out.contains("{\"kind\":\"cpuid\",\"count\":1234}"));
    assert_eq!(operator.run(&["vm", "pause", "debian"]).out, "debian paused\n");
    assert_eq!(
        operator.run(&["vm", "stop", "--yes", "debian", "--json"]).out,
        "{\"done\":\"stopped\",\"name\":\"debian\"}\n"
    );
    let output = operator.run(&["vm", "start", "debain"]);
    assert_eq!(output.err, "baton: there is no virtual machine \"debain\"; did you mean \"debian\"?\n");
    assert_eq!(operator.run(&["vm", "resume", "debian"]).err, "baton: debian runs already; pause it first\n");
    assert_eq!(operator.run(&["down", "--yes"]).out, "host \"default\" is off\n");
    assert_eq!(operator.left_behind(), ["lock", "up.log"]);
    let output = operator.run(&["vm", "list"]);
    assert_eq!(output.err, "baton: no host is running; `cargo baton up host.toml` starts one in an emulator\n");
}

fn guests_are_shut_down_or_stopped_at_the_timeout() {
    let operator = Operator::new("");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["vm", "wait", "debian", "--timeout", "0"]);
    assert_eq!(output.status, 1);
    let hint = "`baton vm shutdown debian` asks it to";
    assert_eq!(output.err, format!("baton: guest debian has not ended within 0 s; {hint}\n"));
    let output = operator.run(&["vm", "shutdown", "debian"]);
    assert!(output.err.contains("shutdown ends guest debian") && output.err.contains("give --yes"), "{}", output.err);
    let output = operator.run(&["vm", "shutdown", "--yes", "debian", "debain"]);
    assert_eq!((output.status, output.err.contains("did you mean \"debian\"?")), (5, true), "{}", output.err);
    let output = operator.run(&["vm", "shutdown", "--yes", "debian", "debian"]);
    assert!(
        output.out.starts_with("debian shut down (powered off; ") && output.out.lines().count() == 1,
        "{}",
        output.out
    );
    let output = operator.run(&["vm", "shutdown", "debian"]);
    assert!(output.status == 0 && output.out.starts_with("debian stopped already (powered off; "), "{}", output.out);
    assert!(operator.run(&["vm", "wait", "debian"]).out.starts_with("debian ended (powered off; "));
    let output = operator.run(&["vm", "stop", "--yes", "--all"]);
    let none = "baton: no machine is in a state for that; `baton vm list` shows their states\n";
    assert_eq!((output.status, output.out.as_str(), output.err.as_str()), (0, "", none));
    assert_eq!(operator.run(&["vm", "start", "--all"]).out, "debian started\n");
    assert_eq!(operator.run(&["vm", "start", "--all", "debian"]).status, 2);

    let operator = Operator::new("ignores");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["vm", "shutdown", "--yes", "--json", "--timeout", "1", "debian"]);
    let expected = "{\"done\":\"stopped: it did not shut down within 1 s\",\"name\":\"debian\",\"reason\":\"stopped by";
    assert!(output.status == 0 && output.out.starts_with(expected), "{}{}", output.out, output.err);
}

fn cpus_are_listed_and_taken_offline_and_online() {
    let operator = Operator::new("");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["cpu", "list"]);
    let lines: Vec<String> =
        output.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let expected = [
        "CPU APIC STATE BUSY VCPUS REASON",
        "0 0 online 21 % debian/0,debian/1",
        "1 2 leaving 100 %",
        "2 4 offline",
        "3 6 failed it did not come further than initialisation",
    ];
    assert_eq!(lines, expected, "{}", output.err);
    let output = operator.run(&["cpu", "list", "--json"]);
    let first = output.out.lines().next().expect("a line");
    assert_eq!(
        first,
        "{\"index\":0,\"apic_id\":0,\"state\":\"online\",\"reason\":null,\"busy_permille\":215,\
         \"vcpus\":[{\"vm\":\"debian\",\"vcpu\":0},{\"vm\":\"debian\",\"vcpu\":1}]}"
    );
    assert_eq!(output.out.lines().count(), 4, "every page");
    assert_eq!(operator.run(&["cpu", "offline", "1"]).out, "CPU 1 is offline\n");
    let output = operator.run(&["cpu", "online", "1", "--json"]);
    assert_eq!(output.out, "{\"cpu\":1,\"done\":\"online\"}\n");
    let output = operator.run(&["cpu", "offline", "0"]);
    let refused = "baton: CPU 0 serves the control channel; it stays; take another one offline\n";
    assert_eq!((output.status, output.err.as_str()), (4, refused));
    assert_eq!(operator.run(&["cpu", "offline", "one"]).status, 2);
}

fn a_console_is_typed_on_by_a_script() {
    let operator = Operator::new("");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.types("uname -a\n", &["vm", "console", "debian", "--linger", "0.3"]);
    assert_eq!((output.status, output.out.as_str()), (0, "UNAME -A\n"), "{}", output.err);
    let output = operator.types("", &["vm", "console", "debian", "--linger", "0.3"]);
    assert_eq!(output.out, "UNAME -A\n", "the screen as it was left");
    let output = operator.types("", &["vm", "console", "other"]);
    assert!(output.err.contains("no virtual machine \"other\"; `baton vm list` shows"), "{}", output.err);
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
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
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
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["log"]);
    assert_eq!(output.out.lines().count(), 3, "{}{}", output.out, output.err);
    assert!(output.out.starts_with("[    0.000000] cpu0 info  boot: record 0\n"), "{}", output.out);
    let output = operator.run(&["events", "--json"]);
    let ready = "{\"sequence\":0,\"time_ns\":5,\"kind\":\"host-ready\",\"time\":\"20";
    assert!(output.out.starts_with(ready) && output.out.lines().count() == 1, "{}", output.out);
    let output = operator.run(&["events", "-T"]);
    assert!(output.out.starts_with("[20") && output.out.ends_with("Z] host ready\n"), "{}", output.out);
    let followers = ["log", "events"].map(|records| {
        let follower = operator.start(&mut operator.command(&[records, "-f", "--json"]));
        thread::sleep(Duration::from_millis(500));
        follower
    });
    assert_eq!(operator.run(&["down", "--yes"]).status, 0);
    for (follower, lines) in followers.into_iter().zip([4, 1]) {
        let output = follower.wait_with_output().expect("ended");
        let out = String::from_utf8(output.stdout).expect("text");
        let err = String::from_utf8(output.stderr).expect("text");
        assert_eq!(output.status.code(), Some(1), "the end of the host is no success");
        assert!(err.contains("the host has ended") && err.contains("nothing more comes"), "{err}");
        assert_eq!(out.lines().count(), lines, "{out}");
        assert!(out.lines().all(|line| line.starts_with("{\"sequence\":")));
    }
}

fn a_detached_host_that_fails_shows_its_last_lines() {
    let output = Operator::new("panic").run(&["up", "host.toml", "--detach"]);
    assert_eq!(output.status, 1);
    assert!(output.err.contains("ended before it answered (status 3)"), "{}", output.err);
    assert!(output.err.contains("host   │ panicked"), "{}", output.err);
}

fn a_host_that_does_not_go_is_ended_by_force() {
    let operator = Operator::new("stubborn");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["down", "--yes", "--timeout", "1"]);
    assert_eq!(output.out, "host \"default\" did not power off within 1 s; it was ended by force\n", "{}", output.err);
    assert_eq!(operator.run(&["info"]).status, 6);
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
        let output = operator.run(arguments);
        assert!(output.status != 0 && output.err.contains(expected), "{arguments:?}: {}", output.err);
    }
}

fn a_bundle_is_written() {
    let operator = Operator::new("");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_str().expect("text");
    let output = operator.run(&["bundle", "host.toml", "-o", path]);
    assert!(output.out.contains(": 1 guest, "), "{}{}", output.out, output.err);
    let bytes = fs::read(path).expect("written");
    assert_eq!(Bundle::parse(&bytes).expect("good").verify("vmlinuz"), Ok(&b"a kernel"[..]));
}

fn a_core_has_its_name_once_it_is_whole() {
    let operator = Operator::new("");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
    let output = operator.run(&["vm", "dump", "debian", "-o", "a.core"]);
    assert_eq!(output.status, 0, "{}", output.err);
    assert!(operator.has("a.core") && !operator.has("a.core.partial"));
    // The host's lines come by another way than its answers.
    until(|| operator.log().contains("held for "));
    until(|| operator.log().contains("resumed"));
}

fn an_interrupted_dump_leaves_no_file() {
    for signal in [Signal::INT, Signal::TERM] {
        let operator = Operator::new("unresponsive");
        assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
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
    until(|| operator.run(&["info"]).status == 0);
    let emulator = operator.emulator();
    assert!(is_alive(emulator));
    kill_process(Pid::from_child(&up), Signal::KILL).expect("sent");
    up.wait().expect("ended");
    until(|| !is_alive(emulator));
}

/// Returns whether a process runs: one that was not yet waited for does not.
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

fn output_without_a_reader_ends_the_tool_quietly() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let operator = Operator::new("");
    assert_eq!(operator.run(&["up", "host.toml", "--detach"]).status, 0);
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
        // The console's output.
        let _ = child.stdin.take().expect("piped").write_all(b"typed\n");
        let output = child.wait_with_output().expect("ended");
        let end = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert_eq!(end, (Some(141), String::new()), "{arguments:?}");
    }
}
