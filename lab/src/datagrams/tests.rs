// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn wait_for(receiver: &Receiver, count: usize) -> Arrivals {
    let end = Instant::now() + LIMIT;
    while receiver.arrivals().count() < count && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    receiver.arrivals()
}

#[test]
fn a_receiver_counts_what_a_user_network_sends_on() {
    let (receiver, port) = Receiver::of_user_network().expect("a port");
    let guest = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    for number in [3, 4, 6] {
        guest.send_to(&frame::tests::datagram(number), (Ipv4Addr::LOCALHOST, port)).expect("sent");
    }
    guest.send_to(b"anything else", (Ipv4Addr::LOCALHOST, port)).expect("sent");
    let arrivals = wait_for(&receiver, 3);
    assert_eq!((arrivals.count(), arrivals.lost_count()), (3, 1));
    assert!(arrivals.longest_silence(Duration::ZERO..receiver.now()) <= receiver.now());
}

#[test]
fn a_receiver_knows_what_its_own_socket_has_dropped() {
    let (receiver, port) = Receiver::of_user_network().expect("a port");
    assert_eq!(receiver.dropped(), Some(0));
    let guest = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let end = Instant::now() + LIMIT;
    let held = receiver.arrivals.lock().expect("the receiver's");
    while receiver.dropped() == Some(0) && Instant::now() < end {
        guest.send_to(&frame::tests::datagram(1), (Ipv4Addr::LOCALHOST, port)).expect("sent");
    }
    drop(held);
    assert!(receiver.dropped() > Some(0));
}

#[test]
fn a_receiver_finds_datagrams_in_frames() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("remote");
    let receiver = Receiver::of_frames(&path).expect("a socket");
    let card = UnixDatagram::unbound().expect("a socket");
    card.send_to(&frame::tests::frame(8), &path).expect("sent");
    card.send_to(&frame::tests::datagram(9), &path).expect("sent");
    card.send_to(&frame::tests::frame(10), &path).expect("sent");
    let arrivals = wait_for(&receiver, 2);
    assert_eq!((arrivals.count(), arrivals.lost_count()), (2, 1));
}

#[test]
fn a_socket_in_a_folder_that_is_not_there_is_named() {
    let error = Receiver::of_frames(Path::new("/nowhere/remote")).expect_err("no folder");
    assert!(error.to_string().contains("/nowhere/remote cannot be made"), "{error}");
}
