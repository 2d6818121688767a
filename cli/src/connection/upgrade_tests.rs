// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the upgrade.

use wire::{Refusal, RefusalCode};

use super::{head_of, refused};

#[test]
fn a_head_is_read_to_its_end_and_not_beyond() {
    let mut answer = &b"HTTP/1.1 101 Switching Protocols\r\nupgrade: baton-control\r\n\r\nframes"[..];
    assert!(head_of(&mut answer).expect("a head").starts_with("HTTP/1.1 101"));
    assert_eq!(answer, b"frames");
    for bad in [&b"SSH-2.0-OpenSSH\r\n"[..], &[b'x'; 20_000]] {
        let error = head_of(&mut &bad[..]).expect_err("no head").to_string();
        assert!(error.contains("is it `baton serve`?"), "{error}");
    }
}

#[test]
fn a_refusal_has_the_services_own_reason() {
    let body = br#"{"error":"denied","message":"bob has no role"}"#;
    let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n", body.len());
    let error = refused(&mut &body[..], &head, 403);
    let denied = error.downcast_ref::<Refusal>().map(|refusal| (refusal.code, &refusal.reason[..]));
    assert_eq!(denied, Some((RefusalCode::Denied, "bob has no role")));
    assert_eq!(refused(&mut &body[..], &head, 404).to_string(), "bob has no role");
    let error = refused(&mut &b"<html>"[..], "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 6\r\n\r\n", 502).to_string();
    assert_eq!(error, "it answers with HTTP's status 502; is it `baton serve` of this release?");
}
