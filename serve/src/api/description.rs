// SPDX-License-Identifier: MIT OR Apache-2.0
//! The API's description.

use axum::Json;
use utoipa::OpenApi;

use super::{
    capture, config, console, control, create, dump, figures, files, history, keys, orders, previous, profile, reads,
    restart, settings, shutdown, stream, update, wait,
};

/// The API.
#[derive(OpenApi)]
#[openapi(
    // Those of paths' parameters are not found by themselves.
    components(schemas(orders::CpuOrder, orders::GuestOrder)),
    info(title = "baton serve", description = "Hosts of Baton: see them, operate them, replace their hypervisor."),
    paths(
        reads::whoami,
        reads::hosts,
        reads::host,
        reads::info,
        reads::vulnerabilities,
        reads::guests,
        reads::cpus,
        reads::networks,
        reads::disks,
        reads::iommus,
        reads::pci,
        reads::timeline,
        reads::log,
        reads::events,
        reads::updates,
        config::config,
        config::config_toml,
        files::list,
        figures::guest,
        figures::host,
        keys::list,
        previous::previous,
        history::health,
        history::history,
        stream::stream,
        console::follow,
        console::type_bytes,
        control::host,
        control::only_host,
        create::create,
        orders::guest,
        settings::set,
        shutdown::shutdown,
        wait::wait,
        files::send,
        files::remove,
        keys::revoke,
        restart::confirm,
        restart::restart,
        dump::dump,
        profile::profile,
        capture::capture,
        orders::cpu,
        orders::assign,
        orders::release,
        orders::power_off,
        update::update,
    )
)]
pub(super) struct Description;

/// Returns the API's description in OpenAPI 3.1.
pub(super) async fn openapi() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}
