// SPDX-License-Identifier: MIT OR Apache-2.0
//! Between a browser and the service: it adds the client's certificate, which a browser would ask its user for, and a
//! page around the service's page, whose script reports what that shows.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use baton::connection::Identity;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const VISIT: &str = include_str!("visit.html");
/// The service's page alone. It is loaded once a picture that is hidden has come, and the page has what it shows.
const FRAMED: &str = "<!DOCTYPE html><title>picture</title><body style=\"margin: 0\"><img src=\"/later\" alt=\"\" hidden>\
                      <iframe src=\"/\" title=\"the page\" style=\"border: 0; width: 100vw; height: 100vh\"></iframe>";
const LATER: Duration = Duration::from_secs(8);

/// Returns the address for the browser, and what the page's visitor reports.
pub fn serve(port: u16, identity: &Identity) -> Result<(SocketAddr, Receiver<String>)> {
    let config = Arc::new(config(identity)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (address, (send, receive)) = (listener.local_addr()?, channel());
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (config, send) = (config.clone(), send.clone());
            // A connection that breaks is the browser's to repeat.
            thread::spawn(move || pass(stream, port, config, &send));
        }
    });
    Ok((address, receive))
}

fn config(identity: &Identity) -> Result<ClientConfig> {
    let read = |path: &Option<std::path::PathBuf>| Ok::<_, anyhow::Error>(fs::read(path.as_ref().context("a file")?)?);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read(&identity.authority)?)?)?;
    let certificate = CertificateDer::from_pem_slice(&read(&identity.certificate)?)?;
    let key = PrivateKeyDer::from_pem_slice(&read(&identity.key)?)?;
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(roots);
    Ok(builder.with_client_auth_cert(vec![certificate], key)?)
}

/// Answers one request, or passes it on: one for each connection.
fn pass(mut browser: TcpStream, port: u16, config: Arc<ClientConfig>, send: &Sender<String>) -> Result<()> {
    let (head, body) = request(&mut browser)?;
    let own = match head.split(' ').nth(1) {
        Some("/visit") => VISIT,
        Some("/framed") => FRAMED,
        Some("/later") => {
            thread::sleep(LATER);
            ""
        }
        Some("/seen") => {
            send.send(String::from_utf8_lossy(&body).into_owned())?;
            ""
        }
        _ => return forward(browser, port, config, &head, &body),
    };
    let length = own.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    Ok(browser.write_all(&[head.as_bytes(), own.as_bytes()].concat())?)
}

/// Reads a request: its head, with the empty line, and its body.
fn request(browser: &mut TcpStream) -> Result<(String, Vec<u8>)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        bytes.extend(read(browser, &mut buffer)?);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = bytes.split_off(end);
    while body.len() < length.unwrap_or(0) {
        body.extend(read(browser, &mut buffer)?);
    }
    Ok((head, body))
}

fn read<'b>(from: &mut impl Read, buffer: &'b mut [u8]) -> Result<&'b [u8]> {
    let count = from.read(buffer)?;
    anyhow::ensure!(count > 0, "the connection has ended");
    Ok(&buffer[..count])
}

fn forward(mut browser: TcpStream, port: u16, config: Arc<ClientConfig>, head: &str, body: &[u8]) -> Result<()> {
    let connection = ClientConnection::new(config, "localhost".try_into()?)?;
    let mut service = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port))?);
    service.write_all(head.replace("Connection: keep-alive", "Connection: close").as_bytes())?;
    service.write_all(body)?;
    let mut buffer = [0; 16 << 10];
    loop {
        let mut text = read(&mut service, &mut buffer)?.to_vec();
        // The page may stand in a frame of this proxy's: a word of the same length, nothing else changes.
        if let Some(at) = text.windows(22).position(|window| window == b"frame-ancestors 'none'") {
            text[at + 16..at + 22].copy_from_slice(b"'self'");
        }
        browser.write_all(&text)?;
    }
}
