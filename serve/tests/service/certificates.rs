// SPDX-License-Identifier: MIT OR Apache-2.0
//! Certificates of services and their clients.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use baton::connection::Identity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};

/// An authority that signs certificates.
pub type Authority = CertifiedIssuer<'static, KeyPair>;

/// Makes an authority.
pub fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
}

/// Returns a certificate and its key, in PEM; with a year it is one that expired at its beginning.
pub fn certificate(authority: &Authority, name: &str, last_year: Option<i32>) -> (String, String) {
    let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
    if let Some(year) = last_year {
        params.not_before = date_time_ymd(year - 1, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
    }
    let key = KeyPair::generate().expect("a key");
    (params.signed_by(&key, authority).expect("signed").pem(), key.serialize_pem())
}

/// Writes the files of a service with the name `localhost` for clients of this authority with these roles.
pub fn write_access(folder: &Path, authority: &Authority, roles: &str) {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
    let (own, key) = certificate(authority, "localhost", None);
    write("server.pem", &own);
    write("server.key", &key);
    write("clients.pem", &authority.pem());
    let files = "certificate = \"server.pem\"\nkey = \"server.key\"\nauthority = \"clients.pem\"\n";
    write("access.toml", &format!("{files}[roles]\n{roles}"));
}

/// Writes a client's files; the tool takes them.
pub fn write_identity(folder: &Path, (certificate, key): &(String, String), authority: &Authority) -> Identity {
    let folder = tempfile::tempdir_in(folder).expect("a folder").keep();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("set");
        Some(path)
    };
    let authority = write("ca.pem", &authority.pem());
    Identity { certificate: write("client.pem", certificate), key: write("client.key", key), authority }
}
