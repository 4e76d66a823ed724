"""A person's client of a CalDAV server.

calendar_client.py URL USER PASSWORD make NAME: makes a calendar; prints its address.
… zone CALENDAR NAME: sets the time zone of the calendar's days.
… add CALENDAR UID TITLE START END [INVITED]: adds an event, of the organizer ada@a.test if someone is invited.
… move CALENDAR UID START END; … remove CALENDAR UID
… read CALENDAR: prints each event with its title, start, and the answers of the invited.
Times are like 2026-12-01T10:00:00+00:00, and days like 2026-12-01. Each command prints lines of JSON.
"""

import json
import sys
from datetime import date, datetime, timezone
from urllib.parse import unquote, urlsplit

import caldav
from icalendar import Calendar, Event, vCalAddress

url, user, password, command, *rest = sys.argv[1:]
client = caldav.DAVClient(url, username=user, password=password)


def path(resource):
    return urlsplit(str(resource.url)).path


def calendar():
    # Servers and clients differ in what they encode.
    return next(one for one in client.principal().calendars() if unquote(path(one)) == unquote(rest[0]))


def moment(text):
    return datetime.fromisoformat(text) if "T" in text else date.fromisoformat(text)


def show(event):
    part = event.icalendar_component
    invited = part.get("attendee", [])
    answers = {str(one).removeprefix("mailto:"): one.params.get("PARTSTAT") for one in (invited if isinstance(invited, list) else [invited])}
    print(json.dumps({"uid": str(part["uid"]), "title": str(part["summary"]), "start": part["dtstart"].dt.isoformat(), "answers": answers}))


if command == "make":
    calendars = client.principal().calendars()
    # xandikos has one.
    made = calendars[0] if calendars else client.principal().make_calendar(name=rest[0])
    print(json.dumps({"calendar": path(made)}))
elif command == "zone":
    name = rest[1]
    zone = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:a\r\nBEGIN:VTIMEZONE\r\nTZID:{name}\r\nEND:VTIMEZONE\r\nEND:VCALENDAR\r\n"
    client.proppatch(
        str(calendar().url),
        '<d:propertyupdate xmlns:d="DAV:" xmlns:c="urn:ietf:params:xml:ns:caldav"><d:set><d:prop>'
        f"<c:calendar-timezone>{zone}</c:calendar-timezone></d:prop></d:set></d:propertyupdate>",
    )
elif command == "add":
    _, uid, title, start, end, *invited = rest
    event = Event()
    event.add("uid", uid)
    event.add("summary", title)
    # What takes place in the past was written then.
    now = datetime.now(timezone.utc)
    event.add("dtstamp", min(moment(start), now) if "T" in start else now)
    event.add("dtstart", moment(start))
    event.add("dtend", moment(end))
    if invited:
        event.add("organizer", vCalAddress("mailto:ada@a.test"))
    for address in invited:
        person = vCalAddress(f"mailto:{address}")
        person.params["PARTSTAT"] = "NEEDS-ACTION"
        event.add("attendee", person)
    whole = Calendar()
    whole.add("version", "2.0")
    whole.add("prodid", "-//a person//EN")
    whole.add_component(event)
    calendar().save_event(whole.to_ical().decode())
elif command == "move":
    _, uid, start, end = rest
    event = calendar().event_by_uid(uid)
    with event.edit_icalendar_component() as part:
        part["dtstart"].dt, part["dtend"].dt = datetime.fromisoformat(start), datetime.fromisoformat(end)
    event.save()
elif command == "remove":
    calendar().event_by_uid(rest[1]).delete()
elif command == "read":
    for event in sorted(calendar().events(), key=lambda event: str(event.icalendar_component["uid"])):
        show(event)
