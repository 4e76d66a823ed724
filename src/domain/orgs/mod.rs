//! Organizations: the tenants, with their settings and plan limits.
//!
//! Members edit the settings (`organization.edit`), and can stop everything at once: `stop.rs` stores the stop in the
//! row, and `emergency_stop` carries it out. The installation's operator creates organizations and sets their plan and
//! contract on the command line.

mod check;
mod edit;
mod entity;
mod events;
mod input;
mod limits;
mod operator;
mod queries;
mod rows;
mod stop;

pub use self::{
    check::{ParsedCron, check_base_url, check_timezone, check_url, has_no_credentials, parse_cron},
    edit::{set_plan, update},
    events::{Created, HasImage, HasSecondFactor, TermsChanged},
    input::UpdateOrganizationInput,
    limits::{
        Limit, check_count, check_limit, check_stored, count_stored, lock, optional_data_fits, pace,
        require_room, store_plans, value as limit,
    },
    operator::{NewOrganization, all, check_name, create, create_in, find, find_in},
    queries::{LETTING_GO, Overview},
    rows::{
        AlertThresholds, alert_thresholds, default_image, is_stopped, oauth_client, session_limit,
        set_avatar, set_default_image,
    },
    stop::{
        Stopped, claim_batch, end_letting_go, letting_go, require_going, set_released, set_stopped, stopped,
    },
};
