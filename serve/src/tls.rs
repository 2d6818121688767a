// SPDX-License-Identifier: MIT OR Apache-2.0
//! TLS 1.3 with certificates on both sides.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, version};
use webpki::EndEntityCert;

use crate::access::{Access, Peer};

/// Prepares handshakes that demand a certificate of one of the authorities.
///
/// # Errors
/// A file cannot be read, or holds no certificate or key, or the key is another certificate's.
pub fn acceptor(access: &Access) -> Result<TlsAcceptor> {
    let chain = certificates(&access.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&access.key)
        .map_err(|error| anyhow!("{}: no private key in it: {error}", access.key.display()))?;
    let mut authorities = RootCertStore::empty();
    for certificate in certificates(&access.authority)? {
        authorities.add(certificate).with_context(|| access.authority.display().to_string())?;
    }
    let provider = Arc::new(ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider.clone()).build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .with_context(|| format!("{} with {}", access.certificate.display(), access.key.display()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = read.map_err(|error| anyhow!("{} cannot be read: {error}", path.display()))?;
    ensure!(!all.is_empty(), "{}: no certificate in it; write it in PEM", path.display());
    Ok(all)
}

/// Returns the client with these certificates, which a handshake has checked.
pub fn peer(access: &Access, certificates: Option<&[CertificateDer<'_>]>) -> Peer {
    let certificate = certificates.and_then(|all| EndEntityCert::try_from(all.first()?).ok());
    match certificate {
        Some(certificate) => access.peer(certificate.valid_dns_names()),
        None => access.peer(std::iter::empty()),
    }
}
