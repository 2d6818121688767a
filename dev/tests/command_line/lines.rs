// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of `baton` with a host that it reaches over another line than the lab's socket: a pseudo-terminal, TCP, ssh.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::operator::Operator;

type Rule = (&'static str, fn());

pub const RULES: &[Rule] = &[
    ("a_host_is_operated_over_a_serial_port", a_host_is_operated_over_a_serial_port),
    ("a_serial_port_is_itself_again_after_a_signal", a_serial_port_is_itself_again_after_a_signal),
    ("a_serial_port_that_cannot_be_used_is_named_with_the_hint", a_serial_port_that_cannot_be_used_is_named),
    ("a_host_is_operated_over_tcp_and_through_another_machine", a_host_is_operated_over_tcp_and_ssh),
    ("a_line_that_ends_is_reported", a_line_that_ends_is_reported),
];

/// A pseudo-terminal in a serial port's place.
struct Port {
    name: String,
    /// Kept open, so that its settings can be read at any time.
    port: OwnedFd,
    other_end: File,
}

impl Port {
    fn new() -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname(&master, Vec::new()).expect("a name").into_string().expect("text");
        let port = open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("opened");
        // Bytes between two commands would be sent back, and the lab's broker drops a client that sends garbage.
        let mut settings = tcgetattr(&port).expect("a terminal");
        settings.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&port, OptionalActions::Now, &settings).expect("set");
        Self { name, port, other_end: master.into() }
    }

    /// A port; at its other end is the host behind a socket.
    fn of_host(socket: &Path) -> Self {
        let port = Self::new();
        let end = || port.other_end.try_clone().expect("a second handle");
        let host = UnixStream::connect(socket).expect("the host runs");
        join(end(), end(), host);
        port
    }

    fn settings(&self) -> String {
        let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
            tcgetattr(&self.port).expect("a terminal");
        format!("{input_modes:?} {output_modes:?} {control_modes:?} {local_modes:?}")
    }

    fn address(&self) -> String {
        format!("tty:{}", self.name)
    }
}

/// Copies bytes both ways until either side ends.
fn join(from: impl Read + Send + 'static, to: impl Write + Send + 'static, host: UnixStream) {
    let back = host.try_clone().expect("a second handle");
    let mut there = host.try_clone().expect("a third handle");
    thread::spawn(move || {
        copy(from, &mut there);
        let _ = host.shutdown(Shutdown::Both);
    });
    thread::spawn(move || copy(back, to));
}

fn copy(mut from: impl Read, mut to: impl Write) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// A TCP port behind which is the host, for any number of connections one after the other.
fn tcp_of(socket: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for tool in listener.incoming().flatten() {
            let from = tool.try_clone().expect("a second handle");
            join(from, tool, UnixStream::connect(&socket).expect("the host runs"));
        }
    });
    format!("tcp:{address}")
}

fn running() -> Operator {
    let operator = Operator::new("");
    let output = operator.run(&["up", "host.toml", "--detach"]);
    assert_eq!(output.status, 0, "{}{}", output.out, output.err);
    operator
}

fn a_host_is_operated_over_a_serial_port() {
    let operator = running();
    let port = Port::of_host(&operator.socket());
    let (address, before) = (port.address(), port.settings());
    let output = operator.run(&["--connect", &address, "info", "--json"]);
    assert!(output.out.starts_with("{\"version\":\"9.9.9\""), "{}{}", output.out, output.err);
    let output = operator.run(&["vm", "list", "--connect", &address]);
    assert!(output.out.contains("debian  running"), "{}{}", output.out, output.err);
    let output = operator.types("ls\n", &["vm", "console", "debian", "--linger", "0.2", "--connect", &address]);
    assert!(output.status == 0 && output.out.contains("LS"), "{}{}", output.out, output.err);
    let mut command = operator.command(&["cpu", "list"]);
    let output = command.env("BATON_CONNECT", &address).output().expect("started");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(port.settings(), before, "a port has its settings back");
}

fn a_serial_port_is_itself_again_after_a_signal() {
    let operator = running();
    let port = Port::of_host(&operator.socket());
    let before = port.settings();
    let mut child = operator.start(&mut operator.command(&["log", "-f", "--connect", &port.address()]));
    let mut first = [0];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("the log");
    assert_ne!(port.settings(), before, "it is raw");
    kill_process(Pid::from_child(&child), Signal::TERM).expect("it runs");
    assert_eq!(child.wait().expect("ended").code(), None, "the signal has ended it");
    assert_eq!(port.settings(), before);
}

fn a_serial_port_that_cannot_be_used_is_named() {
    let operator = Operator::new("");
    let port = Port::new();
    let error = |address: &str| {
        let output = operator.run(&["info", "--connect", address]);
        assert_ne!(output.status, 0);
        output.err
    };
    let cases = [
        ("tty:/dev/nowhere", "baton: there is no device /dev/nowhere; `ls /dev/serial/by-id"),
        ("tty:/dev/null", "/dev/null is no serial port; name one"),
        ("tyt:/dev/ttyS0", "did you mean \"tty\"?"),
        ("tcp:127.0.0.1:1", "nothing listens at 127.0.0.1:1; correct the port"),
        ("unix:/nowhere", "there is no socket /nowhere"),
        ("ssh:nowhere", "nowhere opens no line to a host: there is no `baton` in the path of nowhere"),
    ];
    let bin = operator.program("ssh", "exit 127");
    for (address, expected) in cases {
        let mut command = operator.command(&["info", "--connect", address]);
        let output = command.env("PATH", &bin).output().expect("started");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(expected), "{address}: {text}");
    }
    let lock = File::open(&port.name).expect("opened");
    lock.lock().expect("locked");
    assert!(error(&port.address()).contains(&format!("{} is in use by another process; `fuser", port.name)));
    let output = operator.run(&["info", "--connect", "lab:a", "--name", "a"]);
    assert!(output.status == 2 && output.err.contains("cannot be used with"), "{}", output.err);
}

fn a_host_is_operated_over_tcp_and_ssh() {
    let operator = running();
    let address = tcp_of(operator.socket());
    let output = operator.run(&["info", "--connect", &address]);
    assert!(output.status == 0 && output.out.contains("9.9.9"), "{}{}", output.out, output.err);
    // The far side is this machine: its shell runs the tool's other half.
    let bin = operator.program("ssh", "shift; [ \"$1 $2\" = \"-- gateway\" ] || exit 255; exec sh -c \"$3\"");
    operator.program("baton", &format!("exec {} \"$@\"", env!("CARGO_BIN_EXE_baton-dev")));
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let far = |address: &str| {
        let mut command = operator.command(&["events", "--connect", address]);
        command.env("PATH", &path).output().expect("started")
    };
    for address in ["ssh:gateway", &format!("ssh:gateway/{address}")] {
        let output = far(address);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && out.contains("host ready"), "{address}: {out}{err}");
    }
    let output = far("ssh:gateway/unix:/nowhere");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("there is no socket /nowhere") && text.contains("ended with status 1"), "{text}");
}

fn a_line_that_ends_is_reported() {
    let operator = Operator::new("");
    let port = Port::new();
    let Port { name, port, other_end } = port;
    let child = operator.start(&mut operator.command(&["info", "--connect", &format!("tty:{name}")]));
    let mut first = [0];
    (&other_end).read_exact(&mut first).expect("a greeting");
    drop((other_end, port));
    let output = child.wait_with_output().expect("ended");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("has closed the connection"), "{text}");
}
