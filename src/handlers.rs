//! The features that handle a domain event, or answer a question, of a feature below them. Handlers of an event run in
//! this order, in the transaction that emits it.

use crate::{
    base::{
        enums::StatusReason,
        ids::{CredentialId, McpServerId, SkillId},
        permission::Role,
    },
    core::handlers::Handlers,
    domain::{
        agents, approvals, backups, channels, chat_approvals,
        conversations::{self, turns},
        credentials, deliveries, event_endpoints, hosts, ingest, launch, mcp_servers, model_credentials,
        network, notifications, orgs, people, servers, skills, spending,
    },
};

#[must_use]
pub fn handlers() -> Handlers {
    let mut handlers = Handlers::default();
    add_organization_handlers(&mut handlers);
    add_people_handlers(&mut handlers);
    add_server_handlers(&mut handlers);
    add_agent_handlers(&mut handlers);
    add_network_handlers(&mut handlers);
    add_model_credential_handlers(&mut handlers);
    add_channel_handlers(&mut handlers);
    add_conversation_handlers(&mut handlers);
    add_turn_handlers(&mut handlers);
    add_spending_handlers(&mut handlers);
    add_approval_handlers(&mut handlers);
    add_launch_handlers(&mut handlers);
    handlers
}

fn add_organization_handlers(handlers: &mut Handlers) {
    handlers.on::<orgs::Created>(|tx, event| Box::pin(people::add_to(tx, event.owner, Role::Owner)));
    handlers.on::<orgs::Created>(|tx, _| Box::pin(servers::add_first_image(tx)));
    handlers.on::<orgs::TermsChanged>(|tx, event| Box::pin(agents::mark_for_spending(tx, event)));
    handlers.on::<orgs::TermsChanged>(|tx, event| Box::pin(spending::changed_for_all(tx, event)));
    handlers.answer::<orgs::HasImage>(|tx, question| Box::pin(servers::image_is_usable(tx, question.0)));
    handlers.answer::<orgs::HasSecondFactor>(|tx, question| {
        Box::pin(people::has_second_factor(tx.connection(), question.0))
    });
}

fn add_people_handlers(handlers: &mut Handlers) {
    handlers.on::<people::MemberLeaving>(|tx, event| Box::pin(credentials::forget_member(tx, event.user)));
    handlers.on::<people::MemberRemoved>(|tx, event| Box::pin(channels::forget_recipient(tx, event.user)));
    handlers.on::<people::MemberRemoved>(|tx, event| Box::pin(approvals::forget_assignee(tx, event.user)));
}

fn add_server_handlers(handlers: &mut Handlers) {
    handlers.on::<servers::Deleted>(|tx, event| {
        Box::pin(approvals::withdraw_for_deleted_server(tx, event.server))
    });
    handlers.on::<servers::Deleted>(|tx, event| Box::pin(hosts::delete_load_history(tx, event.server)));
    handlers.on::<servers::ImageChanged>(|tx, event| Box::pin(agents::announce_of_image(tx, event.image)));
    handlers.answer::<servers::CountAgents>(|tx, question| Box::pin(agents::count_on_server(tx, question.0)));
}

fn add_agent_handlers(handlers: &mut Handlers) {
    handlers.on::<agents::Moved>(|tx, event| Box::pin(conversations::forget_sessions(tx, event.agent.id)));
    handlers.on::<agents::Moved>(|tx, event| Box::pin(backups::agent_moved(tx, event)));
    handlers.on::<agents::Edited>(|tx, event| Box::pin(spending::agent_edited(tx, event)));
    handlers
        .on::<agents::Deleted>(|tx, event| Box::pin(approvals::withdraw_for_deleted_agent(tx, &event.agent)));
    handlers.on::<agents::Deleted>(|tx, event| {
        Box::pin(channels::deactivate_for_archived_agent(tx, event.agent.id))
    });
    handlers.on::<agents::Deleted>(|tx, event| Box::pin(turns::cancel_for_deleted_agent(tx, event.agent.id)));
    handlers.on::<agents::Deleted>(|tx, event| Box::pin(spending::delete_wait(tx, event.agent.id)));
    handlers.on::<agents::Deleted>(|tx, event| Box::pin(backups::agent_deleted(tx, &event.agent)));
    handlers
        .on::<agents::Restored>(|tx, event| Box::pin(channels::activate_for_restored_agent(tx, event.agent)));
    handlers.answer::<agents::HasCredentials>(|tx, question| Box::pin(credentials::has_any(tx, question.0)));
    handlers.answer::<agents::SetAssignments<CredentialId>>(|tx, question| {
        Box::pin(credentials::set_of_agent(tx, question.agent, &question.wanted))
    });
    handlers.answer::<agents::SetAssignments<McpServerId>>(|tx, question| {
        Box::pin(mcp_servers::set_of_agent(tx, question.agent, &question.wanted))
    });
    handlers.answer::<agents::SetAssignments<SkillId>>(|tx, question| {
        Box::pin(skills::set_of_agent(tx, question.agent, &question.wanted))
    });
}

fn add_network_handlers(handlers: &mut Handlers) {
    handlers.on::<network::Allowed>(|tx, event| Box::pin(approvals::approve_allowed_host(tx, event)));
}

fn add_model_credential_handlers(handlers: &mut Handlers) {
    handlers
        .on::<model_credentials::Rejected>(|tx, event| Box::pin(approvals::request_credential(tx, event)));
    handlers.on::<model_credentials::Accepted>(|tx, event| {
        Box::pin(approvals::withdraw_credential_requests(tx, event.credential))
    });
    handlers.on::<model_credentials::Released>(|tx, event| {
        Box::pin(spending::usage::recheck_credential(tx, event.credential))
    });
}

fn add_channel_handlers(handlers: &mut Handlers) {
    handlers.on::<channels::BotReplaced>(|tx, event| {
        Box::pin(chat_approvals::unlink_all(tx, event.channel, &event.name))
    });
    handlers.on::<channels::Deleted>(|tx, event| {
        Box::pin(chat_approvals::unlink_all(tx, event.channel, &event.name))
    });
    handlers.on::<channels::Deleted>(|tx, event| {
        Box::pin(approvals::withdraw_for_deleted_channel(tx, event.channel))
    });
    handlers.on::<channels::Edited>(|tx, event| Box::pin(deliveries::on_channel_edited(tx, event)));
    handlers.on::<channels::Failed>(|tx, event| Box::pin(event_endpoints::channel_deactivated(tx, event)));
    handlers.on::<channels::Failed>(|tx, event| Box::pin(approvals::raise_channel_error(tx, event)));
    handlers.on::<channels::OriginAdded>(|tx, event| {
        Box::pin(ingest::forget_refusal(tx, event.channel, &event.origin))
    });
    handlers.on::<channels::Recovered>(|tx, event| {
        Box::pin(approvals::withdraw_channel_errors(tx, event.channel))
    });
    handlers.answer::<channels::HasConversation>(|tx, asked| Box::pin(conversations::exists(tx, asked.0)));
}

fn add_conversation_handlers(handlers: &mut Handlers) {
    handlers.on::<conversations::OutgoingAdded>(|tx, event| Box::pin(deliveries::plan(tx, event)));
    handlers.on::<conversations::Added>(|tx, event| Box::pin(event_endpoints::messages_added(tx, event)));
    handlers.answer::<conversations::ConversationOf>(|tx, asked| {
        Box::pin(deliveries::conversation_of(tx, asked.channel, &asked.vendor_id))
    });
}

fn add_turn_handlers(handlers: &mut Handlers) {
    handlers.on::<turns::Authorized>(|tx, event| {
        Box::pin(approvals::withdraw_model_access_requests(tx, &event.agent))
    });
    handlers.on::<turns::Started>(|tx, event| Box::pin(approvals::mark_delivered_in_turn(tx, event.turn)));
    handlers.on::<turns::Ended>(|tx, event| Box::pin(event_endpoints::turn_ended(tx, event)));
    handlers.answer::<turns::LimitOf>(|tx, asked| Box::pin(spending::limited_since(tx, asked.0)));
}

fn add_spending_handlers(handlers: &mut Handlers) {
    handlers.on::<spending::UsedUp>(|tx, event| Box::pin(approvals::raise_cost_guard(tx, event)));
    handlers
        .on::<spending::LimitsChanged>(|tx, event| Box::pin(approvals::withdraw_outdated_guards(tx, event)));
    handlers.on::<spending::Allowed>(|tx, event| Box::pin(approvals::resolve_raised_limit(tx, event)));
    handlers.on::<spending::Exhausted>(|tx, event| {
        Box::pin(launch::stop_in(tx, event.agent, "costGuard", (StatusReason::LimitReached, &*event.reason)))
    });
}

fn add_approval_handlers(handlers: &mut Handlers) {
    handlers
        .on::<approvals::Raised>(|tx, event| Box::pin(notifications::approval_raised(tx, event.approval)));
    handlers.on::<approvals::Raised>(|tx, event| Box::pin(event_endpoints::approval_raised(tx, event)));
    handlers.on::<approvals::Assigned>(|tx, event| {
        Box::pin(notifications::approval_assigned(tx, event.approval, event.to))
    });
    handlers.on::<approvals::Snoozed>(|tx, event| {
        Box::pin(notifications::forget_raised(tx, event.approval, event.by))
    });
    handlers.on::<approvals::Expiring>(|tx, event| {
        Box::pin(notifications::approval_expiring(tx, event.approval))
    });
    handlers.on::<approvals::Closed>(|tx, event| Box::pin(chat_approvals::close(tx, event.approval)));
    handlers.on::<approvals::Closed>(|tx, event| Box::pin(event_endpoints::approval_decided(tx, event)));
}

fn add_launch_handlers(handlers: &mut Handlers) {
    handlers.on::<launch::Failed>(|tx, event| Box::pin(notifications::agent_failed(tx, event.agent)));
    handlers.on::<launch::Failed>(|tx, event| Box::pin(event_endpoints::agent_failed(tx, event)));
}
