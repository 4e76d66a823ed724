//! Organizations, who acts in them, and their notifications.

use super::UnknownValue;

text_enum! {
    /// An organization's plan.
    pub Plan {
        Free = "FREE": "Free.",
        Starter = "STARTER": "Starter.",
        Pro = "PRO": "Pro.",
        Business = "BUSINESS": "Business.",
        Enterprise = "ENTERPRISE": "Enterprise.",
    }
}

text_enum! {
    /// Whether a business or a person is billed.
    pub CustomerType {
        Business = "BUSINESS": "A business.",
        Individual = "INDIVIDUAL": "A person.",
    }
}

text_enum! {
    /// Which versions of a file are kept.
    pub VersionRetention {
        Spread = "SPREAD": "Many recent versions and a few old ones.",
        Latest = "LATEST": "The latest versions.",
        All = "ALL": "All versions.",
    }
}

text_enum! {
    /// Who acted.
    pub ActorKind {
        User = "USER": "A person.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        System = "SYSTEM": "The service itself.",
        Anonymous = "ANONYMOUS": "An unauthenticated caller.",
    }
}

text_enum! {
    /// The credential an actor used.
    pub CredentialUsed {
        Session = "SESSION": "A session's access token or cookie.",
        ServiceToken = "SERVICE_TOKEN": "A service token.",
        ChannelLink = "CHANNEL_LINK": "A chat that the person has linked, in the channel with this id.",
    }
}

text_enum! {
    /// The proof that a request belongs to a session.
    pub SessionKind {
        Browser = "BROWSER": "A cookie that a browser holds.",
        Tokens = "TOKENS": "Tokens that a program holds.",
    }
}

text_enum! {
    /// Who stored a version of an organization's rules.
    pub PolicyAuthor {
        User = "USER": "A member, through the schema.",
        Operator = "OPERATOR": "The installation's operator, at the command line.",
    }
}

text_enum! {
    /// How an operation ended.
    pub AuditOutcome {
        Allowed = "ALLOWED": "It was carried out.",
        Refused = "REFUSED": "It was refused.",
        Failed = "FAILED": "It was permitted, but failed.",
    }
}

text_enum! {
    /// When a person is notified by mail.
    pub NotificationPace {
        Off = "OFF": "Not at all.",
        AtOnce = "AT_ONCE": "At once, but in no more than one mail every five minutes.",
        Digest = "DIGEST": "Once a day, at 08:00 in the person's time zone.",
    }
}

text_enum! {
    /// The kind of a notification. Not shown.
    pub NotificationKind {
        ApprovalRaised = "APPROVAL_RAISED": "An approval was raised.",
        ApprovalAssigned = "APPROVAL_ASSIGNED": "An approval was assigned to the person.",
        ApprovalExpiring = "APPROVAL_EXPIRING": "An approval is about to expire.",
        AgentFailed = "AGENT_FAILED": "An agent is in ERROR.",
    }
}

text_enum! {
    /// How an installation sends mail.
    pub MailWay {
        Sent = "SENT": "By its mail server.",
        Logged = "LOGGED": "Not at all: the demo writes mail to its terminal.",
        Off = "OFF": "Not at all.",
    }
}

text_enum! {
    /// What is erased.
    pub ErasureSubject {
        Organization = "ORGANIZATION": "The organization, with everything in it.",
        Member = "MEMBER": "A member: the membership ends, and their name is replaced in the organization's records.",
        Contact = "CONTACT": "A contact: their name and addresses are replaced, and their raw mails deleted.",
    }
}

text_enum! {
    /// How far an erasure is.
    pub ErasureState {
        Scheduled = "SCHEDULED": "It begins when it is due. Until then it can be cancelled.",
        Ending = "ENDING": "Members have lost access; agents are stopped and removed from their hosts.",
        Deleting = "DELETING": "The records are being deleted.",
    }
}
