// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

#[test]
fn a_packet_is_the_payload_and_its_sum() {
    assert_eq!(encode("D"), b"$D#44");
    assert_eq!(encode("Z1,100200,1"), b"$Z1,100200,1#37");
    assert_eq!(encode(""), b"$#00");
}

#[test]
fn packets_are_taken_one_by_one() {
    let mut received = b"++$OK#9a$T05thread:01;#0".to_vec();
    assert_eq!(take_packet(&mut received), Ok(Some("OK".to_owned())));
    assert_eq!(take_packet(&mut received), Ok(None));
    received.push(b'7');
    assert_eq!(take_packet(&mut received), Ok(Some("T05thread:01;".to_owned())));
    assert!(received.is_empty());
}

#[test]
fn a_damaged_packet_is_refused() {
    let error = take_packet(&mut b"$OK#9b".to_vec()).expect_err("damaged");
    assert_eq!(error.to_string(), "a packet's checksum is \"9b\", not \"9a\"");
}

#[test]
fn a_packet_without_end_is_refused() {
    let mut received = vec![b'x'; MAX_PACKET_BYTES];
    received.insert(0, b'$');
    assert_eq!(take_packet(&mut received), Err(PacketError::TooLong));
}

#[test]
fn a_machine_is_stopped_and_let_go() {
    let (ours, mut theirs) = UnixStream::pair().expect("a pair");
    let stub = thread::spawn(move || {
        let mut received = Vec::new();
        let mut orders = Vec::new();
        let mut buffer = [0; 256];
        for answer in ["OK", "T05thread:01;", "OK", "OK"] {
            let order = loop {
                if let Some(order) = take_packet(&mut received).expect("whole") {
                    break order;
                }
                let count = theirs.read(&mut buffer).expect("more");
                received.extend(&buffer[..count]);
            };
            orders.push(order);
            theirs.write_all(b"+").expect("taken");
            theirs.write_all(&encode(answer)).expect("taken");
        }
        orders
    });
    let mut debugger = Debugger::over(ours);
    debugger.run_to(0x100_0200).expect("it runs");
    debugger.wait_stopped(ANSWER_TIMEOUT).expect("it stops");
    debugger.detach().expect("it goes");
    assert_eq!(stub.join().expect("ended"), ["Z1,1000200,1", "c", "z1,1000200,1", "D"]);
}

#[test]
fn a_register_is_eight_bytes_the_least_first() {
    assert_eq!(little_endian("7856341200000000"), Some(0x1234_5678));
    for digits in ["", "78563412", "E01", "785634120000000g", "+856341200000000"] {
        assert_eq!(little_endian(digits), None, "{digits:?}");
    }
}
