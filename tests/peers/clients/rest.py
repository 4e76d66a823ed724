"""Over /v1, with the client of openapi-python-client: gives an agent a task, allows what it asks for, and prints how it
ended."""

import os

from muster_client import AuthenticatedClient
from muster_client.api.approval import answer_approval, list_approvals
from muster_client.api.conversation import start_conversation
from muster_client.api.message import post_message
from muster_client.api.turn import get_turn
from muster_client.models import AnswerApprovalInput, PostMessageInput, Problem, StartConversationInput

org, agent = int(os.environ["ORG"]), int(os.environ["AGENT"])
client = AuthenticatedClient(base_url=os.environ["MUSTER_URL"], token=os.environ["MUSTER_TOKEN"])


def good(answer):
    if answer is None or isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer and answer.detail}")
    return answer


new = StartConversationInput(agent_id=agent, title="A task")
conversation = good(start_conversation.sync(org, client=client, body=new))
text = PostMessageInput(text=os.environ["TASK"])
message = good(post_message.sync(org, conversation.id, client=client, body=text))

while not (turn := good(get_turn.sync(org, message.turn_id, client=client, wait=1))).ended_at:
    pending = good(list_approvals.sync(org, client=client, page=1, limit=50, only_pending=True))
    for approval in pending.data:
        if approval.conversation_id == conversation.id:
            answer = AnswerApprovalInput(options=["approve"])
            good(answer_approval.sync(org, approval.id, client=client, body=answer))
            print("approved:", approval.title)
print(turn.state.value)
