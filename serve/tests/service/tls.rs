// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of TLS: a client's certificate decides its role, and a bad one is refused with the reason.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serve::access::Role;
use serve::options::Place;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::certificates::{Authority, authority, certificate, write_access};
use super::common::{Answer, LIMIT, ask, options, serve};
use super::fake::FakeHost;

struct Service {
    address: SocketAddr,
    authority: Authority,
    folder: tempfile::TempDir,
}

impl Service {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let authority = authority("ours");
        write_access(folder.path(), &authority, "alice = \"update\"\nprometheus = \"read\"\n");
        let host = FakeHost::start(folder.path(), "rack1");
        let mut options = options(folder.path(), &[("rack1", &format!("unix:{}", host.socket.display()))]);
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr()).expect("a port");
        options.listen = vec![Place::Tcp(address)];
        options.access = Some(folder.path().join("access.toml"));
        serve(options, Role::Read);
        Self { address, authority, folder }
    }

    /// Asks as the client with this certificate; an error is the one that the service has made TLS report.
    fn ask(&self, client: Option<(String, String)>, method: &str, path: &str) -> Result<Answer, String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).expect("added");
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("versions").with_root_certificates(roots);
        let config = match client {
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("a key");
                builder.with_client_auth_cert(vec![certificate], key).expect("a client")
            }
            None => builder.with_no_client_auth(),
        };
        let name = "localhost".try_into().expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a connection");
        let stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(LIMIT)).expect("set");
        let mut stream = StreamOwned::new(connection, stream);
        // The client's own certificate is checked after its side of the handshake: the answer has the alert.
        use std::io::{Read as _, Write as _};
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let sent = stream.write_all(head.as_bytes());
        let mut bytes = Vec::new();
        match sent.and_then(|()| stream.read_to_end(&mut bytes)) {
            Ok(_) => Ok(ask(&mut Replay(bytes), "", "", "", b"")),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// An answer that was read already.
struct Replay(Vec<u8>);

impl std::io::Read for Replay {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

impl std::io::Write for Replay {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_certificate_gives_its_name_and_role() {
    let service = Service::start();
    let client = |name: &str| Some(certificate(&service.authority, name, None));
    let me = service.ask(client("alice"), "GET", "/api/v1/whoami").expect("an answer").json();
    assert_eq!((&me["who"], &me["role"]), (&"alice".into(), &"update".into()));
    let denied = service.ask(client("prometheus"), "POST", "/api/v1/hosts/rack1/power-off").expect("an answer");
    assert_eq!(denied.status, 403);
    assert_eq!(denied.json()["message"], "prometheus has the role read, and this needs update");
    let mallory = service.ask(client("mallory"), "GET", "/api/v1/hosts").expect("an answer");
    assert_eq!(mallory.status, 403);
    assert!(mallory.json()["message"].as_str().expect("a message").starts_with("mallory has no role"));
    let audit = fs::read_to_string(service.folder.path().join("audit.jsonl")).expect("an audit log");
    assert!(audit.contains(r#""who":"prometheus""#), "{audit}");
}

#[test]
fn a_missing_an_expired_and_a_foreign_certificate_are_refused_by_name() {
    let service = Service::start();
    let expired = certificate(&service.authority, "alice", Some(2020));
    let foreign = certificate(&authority("theirs"), "alice", None);
    let cases = [(None, "CertificateRequired"), (Some(expired), "CertificateExpired"), (Some(foreign), "UnknownCA")];
    for (client, alert) in cases {
        let error = service.ask(client, "GET", "/api/v1/hosts").expect_err(alert);
        assert!(error.contains(alert), "{alert}: {error}");
    }
    // A client that speaks no TLS gets no answer in HTTP, and no other one waits for it.
    let idle = TcpStream::connect(service.address).expect("connected");
    assert!(service.ask(Some(certificate(&service.authority, "alice", None)), "GET", "/api/v1/hosts").is_ok());
    drop(idle);
}

#[test]
fn there_is_no_tcp_without_tls_but_on_loopback_by_request() {
    let error = |place: &str, is_insecure: bool| {
        let mut options = options(Path::new("/nonexistent"), &[]);
        options.insecure_loopback = is_insecure;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let place: Place = place.parse().expect("a place");
        let opened = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(10), serve::listen::Door::open(&place, &options)).await
        });
        opened.expect("in time").err().map(|error| format!("{error:#}"))
    };
    for (place, is_insecure) in [("tcp:127.0.0.1:0", false), ("tcp:0.0.0.0:0", true), ("tcp:[::]:0", true)] {
        let error = error(place, is_insecure).expect(place);
        assert!(error.contains("no TCP without TLS"), "{error}");
    }
    assert_eq!(error("tcp:127.0.0.1:0", true), None);
}
