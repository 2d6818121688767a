// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of a client's files, and of answers. `serve/tests/service/control.rs` has those of certificates.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use wire::{Refusal, RefusalCode};

use super::identity::{Files, Identity};
use super::{head, refused};

fn nowhere(_: &str) -> Option<OsString> {
    None
}

#[test]
fn the_command_line_counts_before_the_environment_and_that_before_the_users_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["cert.pem", "cert.key", "ca.pem"] {
        fs::write(folder.path().join(name), "").expect("written");
    }
    let stated = Identity { certificate: Some("stated.pem".into()), ..Identity::default() };
    let variable = |name: &str| (name != "BATON_CA").then(|| format!("{name}.file").into());
    let files = stated.files_from(variable, Some(folder.path())).expect("files");
    let (certificate, key) = (Some("stated.pem".into()), Some("BATON_CERT_KEY.file".into()));
    assert_eq!(files, Files { certificate, key, authority: folder.path().join("ca.pem") });
    let files = Identity::default().files_from(nowhere, Some(folder.path())).expect("files");
    assert_eq!(files.certificate, Some(folder.path().join("cert.pem")));
}

#[test]
fn an_authority_is_needed_and_a_certificate_is_not() {
    let error = Identity::default().files_from(nowhere, Some(Path::new("/nowhere"))).expect_err("none").to_string();
    assert!(error.contains("name its file with --ca or BATON_CA"), "{error}");
    let authority = Some(PathBuf::from("ca.pem"));
    let files = Identity { authority, ..Identity::default() }.files_from(nowhere, None).expect("files");
    assert_eq!(files.certificate, None);
    assert!(files.own().expect("none is fine").is_none());
}

#[test]
fn a_head_is_read_to_its_end_and_not_beyond() {
    let mut answer = &b"HTTP/1.1 101 Switching Protocols\r\nupgrade: baton-control\r\n\r\nframes"[..];
    assert!(head(&mut answer).expect("a head").starts_with("HTTP/1.1 101"));
    assert_eq!(answer, b"frames");
    for bad in [&b"SSH-2.0-OpenSSH\r\n"[..], &[b'x'; 20_000]] {
        let error = head(&mut &bad[..]).expect_err("no head").to_string();
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
