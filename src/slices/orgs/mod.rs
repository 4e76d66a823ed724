//! Organizations: the tenants, with their settings and plan limits.
//!
//! Members edit the settings (`organization.edit`), and can stop everything at once (`organization.stop`, `stop.rs`). The installation's operator creates organizations and sets
//! their plan and contract on the command line.

mod check;
mod edit;
mod entity;
pub mod graphql;
mod input;
mod limits;
mod operator;
mod queries;
mod rows;
mod stop;

pub use self::{
    check::{JudgedCron, check_base_url, check_timezone, check_url, has_no_credentials, judge_cron},
    edit::update,
    input::UpdateOrganizationInput,
    limits::{
        Limit, check_count, check_limit, check_stored, count_stored, fits, lock, pace, require_room,
        store_plans, value as limit,
    },
    operator::{NewOrganization, all, check_name, create, find, find_in},
    queries::{MAY_GO, Overview},
    rows::{AlertThresholds, alert_thresholds, default_image, is_stopped, session_limit, set_avatar},
    stop::{let_go, release, require_going, stop, stopped},
};
