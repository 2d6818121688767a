// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_datagram_is_sent_each_millisecond_and_those_of_a_pause_behind_it() {
    let start = Instant::now();
    let (mut sending, mut sent) = (Sending::new(start), Vec::new());
    for ms in [0, 1, 2, 50] {
        sending.catch_up(start + Duration::from_millis(ms), |bytes| {
            sent.push(bytes.to_vec());
            Ok(())
        });
    }
    let expected: Vec<_> = (0..=50).map(|number| datagram(number).to_vec()).collect();
    assert_eq!(sent, expected);
    let report = sending.take_report(start + REPORT_INTERVAL);
    assert_eq!(report.as_deref(), Some("stream 0 sent=51 errors=0 late_us=47000"));
}

#[test]
fn a_failure_to_send_is_counted_and_the_number_is_gone() {
    let start = Instant::now();
    let mut sending = Sending::new(start);
    sending.catch_up(start, |_| Err(io::ErrorKind::NetworkDown.into()));
    assert_eq!((sending.number, sending.errors), (1, 1));
}

#[test]
fn there_is_no_report_within_a_second() {
    let start = Instant::now();
    assert_eq!(Sending::new(start).take_report(start + REPORT_INTERVAL - PERIOD), None);
}

#[test]
fn a_datagram_has_the_magic_and_its_number() {
    assert_eq!(&datagram(0x0102), b"batonudp\x02\x01\0\0\0\0\0\0");
}
