// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reasons why a service and its client do not come together, with hints.

use std::io;

use anyhow::{Error, anyhow};
use rustls::{AlertDescription, CertificateError, Error as TlsError};
use wire::Refusal;

use super::identity::Files;

/// Both sides, for errors.
pub(super) struct Peers<'f> {
    /// The service's name and port.
    pub service: String,
    /// The client's files.
    pub files: &'f Files,
}

/// Returns an error of the handshake or of the upgrade as an operator needs it.
pub(super) fn explained(error: Error, peers: &Peers<'_>) -> Error {
    if error.is::<Refusal>() {
        return error;
    }
    let service = &peers.service;
    let tls = tls_error(&error).map(|error| match error {
        TlsError::AlertReceived(alert) => about_own(*alert, peers),
        TlsError::InvalidCertificate(reason) => about_service(reason, peers),
        TlsError::InvalidMessage(_) => format!("{service} speaks no TLS; correct the port"),
        other => format!("{service}: TLS has failed: {other}"),
    });
    match (tls, error.downcast_ref::<io::Error>().map(io::Error::kind)) {
        (Some(reason), _) => anyhow!(reason),
        (None, Some(io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)) => {
            anyhow!("{service} did not answer in time; is it `baton serve` with --access?")
        }
        (None, Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)) => {
            anyhow!("{service} has closed the connection; its standard error has the reason")
        }
        (None, _) => error.context(service.clone()),
    }
}

fn tls_error(error: &Error) -> Option<&TlsError> {
    let within = || error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref();
    error.downcast_ref().or_else(within)
}

/// The service has refused the client's certificate.
fn about_own(alert: AlertDescription, Peers { service, files }: &Peers<'_>) -> String {
    let file = files.certificate.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    match alert {
        AlertDescription::CertificateRequired => {
            format!("{service} demands a client's certificate; name one with --cert and --cert-key, or BATON_CERT")
        }
        AlertDescription::CertificateExpired => {
            format!("{service} refuses {file}: it has expired, or is not valid yet; renew it")
        }
        AlertDescription::UnknownCA => {
            format!("{service} refuses {file}: the service does not know its authority; use a certificate of that one")
        }
        AlertDescription::CertificateRevoked => format!("{service} refuses {file}: it was revoked; get another one"),
        other => format!("{service} refuses {file}: {other:?}; the service's standard error has the reason"),
    }
}

/// The client refuses the service's certificate.
fn about_service(reason: &CertificateError, Peers { service, files }: &Peers<'_>) -> String {
    let authority = files.authority.display();
    match reason {
        CertificateError::UnknownIssuer => {
            format!("the certificate of {service} is not of the authority in {authority}; correct --ca or BATON_CA")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of {service} has expired; have the service's operator renew it")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate of {service} is for another name ({reason}); use its name in the address")
        }
        other => format!("the certificate of {service} is not good: {other}"),
    }
}
