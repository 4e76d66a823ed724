//! People: accounts, how they sign in, and their membership of organizations.
//!
//! A user is a person with an e-mail address and a password who belongs to no organization; a membership gives them a
//! role in one. Permissions: `member.*` in an organization; every signed-in person can manage their own account. Data
//! outside organizations (users, sessions, links, second factors) can't go through a scope: those files look up rows
//! themselves, always by person or by a secret that identifies one, and write through the database's own transactions.
//! Every change that ends a credential or affects a membership also clears the process's credential cache
//! ([`invalidate_all`](crate::core::access::CredentialCache::invalidate_all)).
//!
//! - `accounts/`: users, their names, addresses and passwords, mails and the links in them, and the operator's
//!   commands.
//! - `signing_in/`: signing in with a password, a code or another provider, sessions, rate limits, and the first start.
//! - `membership/`: members of an organization, and invitations to it.
//! - `entity.rs`: the rows of all three. `notifications/delivery.rs` sends their mails.

mod accounts;
mod entity;
mod membership;
mod signing_in;

pub use self::{
    accounts::{
        credentials::{
            change_email, change_name, change_password, confirm_email, request_email_confirmation,
            request_password_reset, reset_password,
        },
        directory::{Account, AccountFilter, Details, MadeToken, accounts, details},
        letters::compose_notice,
        links::compose as compose_link,
        operator::{
            Disabled, Enabled, NewLink, OrganizationRef, WithoutFactor, disable as disable_user,
            enable as enable_user, erase as erase_user, erase_invitations, erase_invitations_of,
            reset_password as reset_user_password, reset_second_factor, solely_owned,
        },
        preferences::{preferences, set_preferences},
        users::{
            Membership, NewUser, User, announce, create_user, find_role_in, find_user, find_user_by,
            find_user_in, has_second_factor, invite_user, memberships, name_of, set_avatar, user,
        },
    },
    membership::{
        invitations::{
            Acceptance, Accepted, Delivery, InvitationOffer, accept as accept_invitation,
            compose as compose_invitation, invite, offer as invitation_offer, resend as resend_invitation,
            revoke as revoke_invitation,
        },
        members::{
            MemberLeaving, MemberRemoved, add_member, add_to, leave, make_owner, remove_member,
            remove_next as remove_next_member, require_reach, update_member,
        },
        queries::REACHABLE,
        rows::{has_member_with, lock_member, missing, role_of},
    },
    signing_in::{
        browser::InBrowser,
        factor::{
            Enrolment, begin as begin_totp, confirm as confirm_totp, disable as disable_totp, regenerate,
        },
        first_start::{
            Founding, complete as complete_first_start, is_open as is_first_start_open,
            renew_code as renew_first_code,
        },
        identities::{LinkedAccount, linked_accounts, unlink as unlink_account},
        listed::{OpenSession, current_session, open_sessions},
        oidc,
        sessions::{
            SignInOrigin, SignedIn, create_session, refresh_session, revoke_other_sessions, revoke_session,
            sign_out,
        },
        sign_in::{
            Challenge, SessionCredentials, SignInResult, complete_sign_in, create_link, exchange, sign_in,
        },
    },
};
