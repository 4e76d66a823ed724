// The settings of a shared drive.
import type { Group } from './transports'

export const DRIVE: Group[] = [
  {
    title: 'Folder',
    fields: [
      {
        kind: 'text',
        path: 'drive.folderId',
        label: 'Folder',
        hint: 'At Google, the last part of the folder’s address; “root” until you choose one on the channel’s page. At a WebDAV server, its path.',
        placeholder: 'Shared files/2026',
        bounds: 'ChannelDriveInput.folderId',
      },
      {
        kind: 'text',
        path: 'drive.folderName',
        label: 'Folder’s name',
        hint: 'The agent reads it with each file.',
        optional: true,
        bounds: 'ChannelDriveInput.folderName',
      },
    ],
  },
  {
    title: 'Server',
    about: 'For Nextcloud and other servers of WebDAV. Leave the address empty for Google.',
    fields: [
      {
        kind: 'text',
        path: 'drive.url',
        label: 'Address',
        placeholder: 'https://cloud.example.com/remote.php/dav/files/agent',
        optional: true,
        bounds: 'ChannelDriveInput.url',
      },
      { kind: 'text', path: 'drive.user', label: 'User', optional: true, bounds: 'ChannelDriveInput.user' },
      {
        kind: 'secret',
        path: 'drive.pass',
        label: 'Password or key',
        hint: 'The user’s password, or for Google the JSON key of a service account. Without a key, connect a Google account on the channel’s page.',
        optional: true,
      },
    ],
  },
]
