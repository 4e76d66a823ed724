// The settings of a calendar.
import type { Group } from './transports'

export const CALENDAR: Group[] = [
  {
    title: 'CalDAV server',
    about: 'Leave it empty for Google calendars: connect the account after creating the channel.',
    fields: [
      {
        kind: 'text',
        path: 'calendar.url',
        label: 'Address',
        placeholder: 'https://cloud.example.com/remote.php/dav/',
        optional: true,
        bounds: 'ChannelCalendarInput.url',
      },
      {
        kind: 'text',
        path: 'calendar.user',
        label: 'User',
        hint: 'With its e-mail address, invitations can be answered.',
        optional: true,
        bounds: 'ChannelCalendarInput.user',
      },
      { kind: 'secret', path: 'calendar.pass', label: 'Password', optional: true },
    ],
  },
  {
    title: 'Reminders',
    fields: [
      {
        kind: 'number',
        path: 'calendar.reminderLeadMinutes',
        label: 'Minutes before an event',
        hint: 'The agent gets a message then. Empty: it gets none.',
        optional: true,
        bounds: 'ChannelCalendarInput.reminderLeadMinutes',
      },
    ],
  },
]
