// SPDX-License-Identifier: MIT OR Apache-2.0
use std::net::Ipv4Addr;

use super::*;
use proptest::prelude::*;

fn only(command_line: &str) -> Task {
    let tasks = tasks(command_line).unwrap();
    assert_eq!(tasks.len(), 1, "{tasks:?}");
    tasks[0]
}

#[test]
fn without_the_option_nothing_is_asked() {
    assert_eq!(tasks("console=ttyS0 quiet\n"), Ok(vec![]));
    assert_eq!(tasks(""), Ok(vec![]));
    assert_eq!(tasks("agent="), Ok(vec![]));
}

#[test]
fn tasks_come_in_the_order_given() {
    assert_eq!(
        tasks("console=ttyS0 agent=drivers,memtest,shell,reboot quiet\n"),
        Ok(vec![Task::Drivers, Task::MemoryTest, Task::Shell, Task::Reboot])
    );
}

#[test]
fn the_last_option_counts() {
    assert_eq!(only("agent=shell agent=wait"), Task::Wait);
}

#[test]
fn an_option_that_only_ends_in_agent_is_not_ours() {
    assert_eq!(tasks("useragent=shell"), Ok(vec![]));
}

#[test]
fn times_are_milliseconds() {
    assert_eq!(only("agent=compute:250"), Task::Compute(Duration::from_millis(250)));
    assert_eq!(only("agent=power-key"), Task::PowerKey(Answer::PowerOff));
    assert_eq!(only("agent=power-key:ignore"), Task::PowerKey(Answer::Ignore));
    assert_eq!(only("agent=flags"), Task::Flags);
    assert_eq!(only("agent=pin:1"), Task::Pin(1));
    assert_eq!(only("agent=queues:50"), Task::Queues(Duration::from_millis(50)));
    assert_eq!(only("agent=dmi:50"), Task::Dmi(Duration::from_millis(50)));
    assert_eq!(only("agent=poll:3"), Task::Poll(Duration::from_millis(3)));
    assert_eq!(only("agent=mix:3"), Task::Mix(Duration::from_millis(3)));
    assert_eq!(only("agent=locks:5"), Task::Locks(Duration::from_millis(5)));
    assert_eq!(only("agent=pipe:5"), Task::Pipe(5));
    assert_eq!(only("agent=churn:5"), Task::Churn(Duration::from_millis(5)));
    assert_eq!(only("agent=stress:250"), Task::Stress(Duration::from_millis(250)));
    assert_eq!(only("agent=replug:3"), Task::Replug(3));
    assert_eq!(only("agent=reset:4"), Task::Reset(4));
    assert_eq!(only("agent=sriov:2"), Task::VirtualFunctions(2));
    assert_eq!(only("agent=nvme-sriov:2"), Task::NvmeFunctions(2));
    let period = Duration::from_millis(10);
    assert_eq!(only("agent=heartbeat:10"), Task::Heartbeat { period, count: None });
    assert_eq!(only("agent=heartbeat:10:3"), Task::Heartbeat { period, count: Some(3) });
}

#[test]
fn a_disk_has_a_size_and_a_stream_addresses() {
    assert_eq!(only("agent=disk:16"), Task::Disk(16));
    assert_eq!(only("agent=reads:32:500"), Task::Reads { depth: 32, time: Duration::from_millis(500) });
    let own = Ipv4Addr::new(10, 0, 2, 15);
    let to = SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), 9000);
    assert_eq!(only("agent=echo:10.0.2.2:9000"), Task::Echo { own: None, to });
    assert_eq!(only("agent=echo:10.0.2.15:10.0.2.2:9000"), Task::Echo { own: Some(own), to });
    assert_eq!(only("agent=stream:10.0.2.15:10.0.2.2:9000"), Task::Stream { own, to });
    assert_eq!(only("agent=packets:10.0.2.15:10.0.2.2:9000"), Task::Flood { traffic: Traffic::Packets, own, to });
    assert_eq!(only("agent=bulk:10.0.2.15:10.0.2.2:9000"), Task::Flood { traffic: Traffic::Bulk, own, to });
    assert_eq!(only("agent=sink:10.0.2.2:9000"), Task::Sink(to));
}

#[test]
fn virtio_sockets_have_an_identifier_and_a_port() {
    assert_eq!(only("agent=vsock-echo:4:9"), Task::VsockEcho { cid: 4, port: 9 });
    assert_eq!(only("agent=vsock-serve:7"), Task::VsockServe(7));
    assert_eq!(only("agent=vsock-crowd:4:9:200"), Task::VsockCrowd { cid: 4, port: 9, times: 200 });
    for word in ["vsock-echo:4", "vsock-echo:4:9:1", "vsock-serve:x", "vsock-crowd:4:9", "vsock-crowd:4:9:1:1"] {
        assert!(tasks(&format!("agent={word}")).is_err(), "{word}");
    }
}

#[test]
fn only_disk_card_and_connection_are_used_beside_what_follows() {
    let list = tasks("agent=drivers,quiet,disk:16,stream:10.0.2.15:10.0.2.2:9000,echo:10.0.2.2:7,wait").unwrap();
    let goes_on: Vec<bool> = list.into_iter().map(Task::goes_on).collect();
    assert_eq!(goes_on, [false, false, true, true, true, false]);
}

#[test]
fn what_cannot_be_read_is_named_in_the_refusal() {
    for word in [
        "shel",
        "compute",
        "compute:",
        "compute:-1",
        "compute:1:2",
        "heartbeat:1:2:3",
        "wait:1",
        "PANIC",
        "stress",
        "replug:x",
        "reset:x",
        "steal:1",
        "disk",
        "disk:x",
        "reads:1",
        "reads:0:5",
        "reads:257:5",
        "reads:1:5:5",
        "stream:10.0.0.1:10.0.0.2",
        "bulk:10.0.0.1:10.0.0.2",
        "packets:10.0.0.1:10.0.0.2:7:8",
        "sink:10.0.0.1",
        "stream:10.0.0.1:10.0.0.2:70000",
        "echo:10.0.0.1",
        "echo:10.0.0.1:7:8",
        "echo:10.0.0.1:10.0.0.2:7:8",
        "stream:10.0.0.256:10.0.0.2:7",
        "stream:10.0.0.1:10.0.0.2:7:8",
        "pin",
        "pin:1024",
        "queues",
    ] {
        let refusal = tasks(&format!("agent={word}")).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("agent={word}: no such task")), "{refusal}");
    }
}

proptest! {
    #[test]
    fn no_command_line_is_too_much(command_line in "\\PC{0,200}", list in "[a-z0-9:,]{0,60}") {
        let _ = tasks(&command_line);
        let _ = tasks(&format!("agent={list}"));
    }
}
