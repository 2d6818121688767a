// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the audit log.

use std::fs;

use super::*;

fn peer() -> Peer {
    Peer { who: "alice\n{".to_owned(), role: Some(Role::Operate), over: Over::Tls }
}

const ORDER: Order<'static> = Order { host: "rack1", request: "guest-stop", subject: "web" };

#[test]
fn an_order_and_its_answer_are_a_line_each_in_a_file_that_grows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    for _ in 0..2 {
        let audit = Audit::open(Some(&path)).expect("opened");
        let order = audit.asked(&peer(), &ORDER).expect("written");
        audit.answered(order, "refused", "it is not running");
    }
    let text = fs::read_to_string(&path).expect("read");
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert_eq!((&lines[0]["who"], &lines[0]["role"]), (&"alice\n{".into(), &"operate".into()));
    assert_eq!((&lines[0]["host"], &lines[0]["request"]), (&"rack1".into(), &"guest-stop".into()));
    assert_eq!((&lines[1]["order"], &lines[1]["result"]), (&lines[0]["order"], &"refused".into()));
}

#[test]
fn a_full_disk_is_an_error() {
    let audit = Audit::over(File::options().write(true).open("/dev/full").expect("opened"));
    assert!(audit.asked(&peer(), &ORDER).is_err());
}
