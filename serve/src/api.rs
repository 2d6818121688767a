// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of clients. `GET` needs the role `read`; the router has a part for each of the other two roles. The
//! role is checked before anything of a request's body is read. A connection that is upgraded ([`control`]) has each of
//! its requests checked.

mod capture;
mod config;
mod console;
mod control;
mod create;
mod description;
mod dump;
mod error;
mod extract;
mod figures;
mod files;
mod history;
mod keys;
mod orders;
mod previous;
mod profile;
mod reads;
mod restart;
mod settings;
mod shutdown;
mod stream;
mod update;
mod wait;

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

pub use self::error::{ErrorBody, Refused};
use crate::access::{Peer, Role, Sender, check_sender};
use crate::audit::Order;
use crate::service::Service;
use crate::{metrics, page};

/// State that all requests share.
pub type App = Arc<Service>;

/// The most bytes of a request's body, but for images.
const MAX_BODY_BYTES: usize = 64 << 10;
/// The Content-Security-Policy of the service's pages: nothing from elsewhere, and no frame around them.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

/// Returns the router of all requests; each carries its [`Peer`] as an extension.
pub fn router(app: App) -> Router {
    let operate = operate().route_layer(from_fn_with_state((app.clone(), Role::Operate), require));
    let update = update().route_layer(from_fn_with_state((app.clone(), Role::Update), require));
    read()
        .merge(operate)
        .merge(update)
        .fallback(error::no_such_path)
        .method_not_allowed_fallback(error::no_such_method)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(axum::middleware::from_fn(admit))
        .with_state(app)
}

/// Returns the path of a host, and this behind it.
fn at(path: &str) -> String {
    format!("/api/v1/hosts/{{host}}{path}")
}

/// Returns the requests that change nothing.
fn read() -> Router<App> {
    let pages = Router::new()
        .route("/", get(page::index))
        .route("/page.js", get(page::script))
        .route("/update.js", get(page::update))
        .route("/hour.js", get(page::hour))
        .route("/timeline.js", get(page::bars))
        .route("/console.js", get(page::console))
        .route("/page.css", get(page::style))
        .route("/metrics", get(metrics::scrape))
        .route(&at("/timeline.html"), get(page::timeline));
    let service = Router::new()
        .route("/api/v1/openapi.json", get(description::openapi))
        .route("/api/v1/health", get(history::health))
        .route("/api/v1/whoami", get(reads::whoami))
        .route("/api/v1/stream", get(stream::stream))
        .route("/api/v1/control", get(control::only_host))
        .route("/api/v1/hosts", get(reads::hosts));
    pages.merge(service).merge(read_host())
}

/// Returns the requests about one host that change nothing.
fn read_host() -> Router<App> {
    Router::new()
        .route(&at(""), get(reads::host))
        .route(&at("/info"), get(reads::info))
        .route(&at("/vulnerabilities"), get(reads::vulnerabilities))
        .route(&at("/guests"), get(reads::guests))
        .route(&at("/control"), get(control::host))
        .route(&at("/guests/{guest}/console"), get(console::follow))
        .route(&at("/guests/{guest}/perf"), get(figures::guest))
        .route(&at("/guests/{guest}/wait"), get(wait::wait))
        .route(&at("/perf/stat"), get(figures::host))
        .route(&at("/cpus"), get(reads::cpus))
        .route(&at("/networks"), get(reads::networks))
        .route(&at("/disks"), get(reads::disks))
        .route(&at("/iommus"), get(reads::iommus))
        .route(&at("/pci"), get(reads::pci))
        .route(&at("/config"), get(config::config))
        .route(&at("/config.toml"), get(config::config_toml))
        .route(&at("/files"), get(files::list))
        .route(&at("/keys"), get(keys::list))
        .route(&at("/timeline"), get(reads::timeline))
        .route(&at("/log"), get(reads::log))
        .route(&at("/log/previous"), get(previous::previous))
        .route(&at("/events"), get(reads::events))
        .route(&at("/history"), get(history::history))
        .route(&at("/updates"), get(reads::updates))
}

/// Returns the orders of the role operate.
fn operate() -> Router<App> {
    Router::new()
        .route(&at("/guests"), post(create::create))
        .route(&at("/guests/{guest}/dump"), post(dump::dump))
        .route(&at("/guests/{guest}/console"), post(console::type_bytes))
        .route(&at("/guests/{guest}/set"), post(settings::set))
        .route(&at("/guests/{guest}/shutdown"), post(shutdown::shutdown))
        .route(&at("/guests/{guest}/{order}"), post(orders::guest))
        .route(&at("/files/{file}/remove"), post(files::remove))
        .route(&at("/cpus/{cpu}/{order}"), post(orders::cpu))
        .route(&at("/perf"), post(profile::profile))
        .route(&at("/networks/{network}/capture"), post(capture::capture))
        .route(&at("/pci/assign"), post(orders::assign))
        .route(&at("/pci/release"), post(orders::release))
}

/// Returns the orders of the role update.
fn update() -> Router<App> {
    Router::new()
        .route(&at("/files"), post(files::send))
        .route(&at("/keys/{key}/revoke"), post(keys::revoke))
        .route(&at("/update"), post(update::update))
        .route(&at("/confirm"), post(restart::confirm))
        .route(&at("/restart"), post(restart::restart))
        .route(&at("/power-off"), post(orders::power_off))
}

/// Admits requests of clients with a role that no foreign page has sent; adds headers for browsers to every answer.
async fn admit(request: Request, next: Next) -> Response {
    let mut response = match check(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response.headers_mut().entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
    response
}

fn check(request: &Request) -> Result<(), Refused> {
    let peer = request.extensions().get::<Peer>().ok_or_else(|| Refused::denied("the client is unknown".to_owned()))?;
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let sender =
        Sender { host: header(HOST), origin: header(ORIGIN), site: header(HeaderName::from_static("sec-fetch-site")) };
    let is_order = !matches!(*request.method(), Method::GET | Method::HEAD);
    check_sender(peer.over, is_order, sender).map_err(Refused::denied)?;
    match peer.role {
        Some(_) => Ok(()),
        None => Err(Refused::denied(format!("{} has no role; add its name to [roles] of the access file", peer.who))),
    }
}

/// Admits clients with at least this role; one that has less is written down.
async fn require(
    State((app, needed)): State<(App, Role)>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    if peer.role >= Some(needed) {
        return next.run(request).await;
    }
    let path = request.uri().path();
    let message = format!("{} has the role {}, and this needs {needed}", peer.who, peer.role.unwrap_or(Role::Read));
    if let Ok(number) = app.audit.asked(&peer, &Order { host: "", request: "denied", subject: path }) {
        app.audit.answered(number, "denied", &message);
    }
    Refused::denied(message).into_response()
}
