// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that are not carried out: a status, and the reason in JSON, as the tool's `--json` has it.

use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use baton::program::Kind;
use baton::suggest::did_you_mean;
use serde::Serialize;
use utoipa::ToSchema;
use wire::Refusal;

use crate::host::{Failure, Host};
use crate::service::Service;
use crate::updates::NotSent;

/// The reason why a request was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ErrorBody {
    /// For programs: `denied`, `invalid`, `not-found`, `refused`, `busy`, `timed-out`, `unreachable`,
    /// `failed`.
    pub error: &'static str,
    /// For people.
    pub message: String,
    /// The host's code, if the host has refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The remedy, if the host states one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// A request that is not carried out.
#[derive(Clone, Debug)]
pub struct Refused {
    /// HTTP's status.
    pub status: StatusCode,
    /// The reason.
    pub body: ErrorBody,
}

impl Refused {
    pub(super) fn new(status: StatusCode, error: &'static str, message: String) -> Self {
        Self { status, body: ErrorBody { error, message, code: None, hint: None } }
    }

    /// The client has no permission.
    pub fn denied(message: String) -> Self {
        Self::new(StatusCode::FORBIDDEN, "denied", message)
    }

    /// The request is invalid.
    pub fn invalid(message: String) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    /// There is no such thing.
    pub fn not_found(message: String) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// Something else is under way.
    pub fn conflict(message: String) -> Self {
        Self::new(StatusCode::CONFLICT, "busy", message)
    }

    /// The client's wait is over.
    pub fn timed_out(message: String) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "timed-out", message)
    }

    /// The service is ending, and begins nothing that takes long.
    pub fn ending() -> Self {
        let message = "the service ends; ask again when it has started again".to_owned();
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// The service has failed.
    pub fn failed(message: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        let error = match failure {
            Failure::Unreachable(message) => return Self::new(StatusCode::SERVICE_UNAVAILABLE, "unreachable", message),
            Failure::Busy(message) => return Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message),
            Failure::Host(error) => error,
        };
        let (status, kind) = match Kind::of(&error) {
            _ if error.is::<NotSent>() => (StatusCode::CONFLICT, "refused"),
            Kind::Refused => (StatusCode::CONFLICT, "refused"),
            Kind::NotFound => (StatusCode::NOT_FOUND, "not-found"),
            Kind::Unreachable => (StatusCode::SERVICE_UNAVAILABLE, "unreachable"),
            Kind::Failed => (StatusCode::BAD_GATEWAY, "failed"),
        };
        let mut refused = Self::new(status, kind, format!("{error:#}"));
        if let Some(Refusal { code, hint, .. }) = error.downcast_ref::<Refusal>() {
            let code = serde_json::to_value(code).ok().and_then(|code| code.as_str().map(str::to_owned));
            (refused.body.code, refused.body.hint) = (code, Some(hint.clone()));
        }
        refused
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

impl Service {
    /// Returns the host of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn host(&self, name: &str) -> Result<&std::sync::Arc<Host>, Refused> {
        self.hosts.get(name).ok_or_else(|| {
            let hint = did_you_mean(name, self.hosts.keys().map(String::as_str));
            Refused::not_found(format!("there is no host {name:?}{hint}"))
        })
    }
}

/// Answers a request for a path that does not exist.
pub(super) async fn no_such_path(uri: Uri) -> Refused {
    Refused::not_found(format!("there is nothing at {}; see /api/v1/openapi.json", uri.path()))
}

/// Answers a request by another method.
pub(super) async fn no_such_method(method: Method, uri: Uri) -> Refused {
    let message = format!("{} takes no {method}; see /api/v1/openapi.json", uri.path());
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, "invalid", message)
}
