import type { TestContext } from 'node:test'
import { MemoryResourceStore } from '../../lib/middleware/references/index.ts'
import { messageItem, responseBody } from './responses-upstream.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

export type Body = Record<string, unknown>
/** The kind of thing that a member names, the param that the refusal reports, and a body that has the member. */
export type Row = readonly [kind: string, param: string, body: (id: string) => Body]

export const input = (part: Body) => ({
  input: [{ role: 'user', content: [{ type: 'input_text', text: 'x' }, part] }],
})
const said = (part: Body) => ({ messages: [{ role: 'user', content: [part] }] })

export const RESPONSES: readonly Row[] = [
  ['response', 'previous_response_id', (id) => ({ previous_response_id: id })],
  ['conversation', 'conversation', (id) => ({ conversation: id })],
  ['conversation', 'conversation', (id) => ({ conversation: { id } })],
  ['prompt', 'prompt', (id) => ({ prompt: { id, version: '1' } })],
  ['item', 'input[0]', (id) => ({ input: [{ type: 'item_reference', id }] })],
  ['item', 'input[0]', (id) => ({ input: [{ id }] })],
  ['item', 'input[0]', (id) => ({ input: [{ type: 'reasoning', id, summary: [] }] })],
  ['item', 'input[0]', (id) => ({ input: [{ type: 'image_generation_call', id }] })],
  ['file', 'input[0].content[1].file_id', (id) => input({ type: 'input_file', file_id: id })],
  ['file', 'input[0].content[1].file_id', (id) => input({ type: 'input_image', file_id: id })],
  [
    'vector_store',
    'tools[0].vector_store_ids',
    (id) => ({ tools: [{ type: 'file_search', vector_store_ids: [id] }] }),
  ],
  ['container', 'tools[0].container', (id) => ({ tools: [{ type: 'code_interpreter', container: id }] })],
  [
    'file',
    'tools[0].container.file_ids',
    (id) => ({ tools: [{ type: 'code_interpreter', container: { type: 'auto', file_ids: [id] } }] }),
  ],
  [
    'container',
    'tools[0].environment.container_id',
    (id) => ({ tools: [{ type: 'shell', environment: { type: 'container_reference', container_id: id } }] }),
  ],
  [
    'file',
    'tools[0].input_image_mask.file_id',
    (id) => ({ tools: [{ type: 'image_generation', input_image_mask: { file_id: id } }] }),
  ],
  ['mystery', 'mystery_id', (id) => ({ mystery_id: id })],
]

export const MESSAGES: readonly Row[] = [
  ['container', 'container', (id) => ({ container: id })],
  ['container', 'container', (id) => ({ container: { id } })],
  [
    'skill',
    'container.skills[0].skill_id',
    (id) => ({ container: { skills: [{ type: 'custom', skill_id: id }] } }),
  ],
  ['thread', 'thread', (id) => ({ thread: id })],
  ['thread', 'thread', (id) => ({ thread: { id } })],
  [
    'message',
    'thread.previous_message_id',
    (id) => ({ thread: { type: 'continue', previous_message_id: id } }),
  ],
  [
    'file',
    'messages[0].content[0].source.file_id',
    (id) => said({ type: 'document', source: { type: 'file', file_id: id } }),
  ],
  [
    'file',
    'messages[0].content[0].source.file_id',
    (id) => said({ type: 'image', source: { type: 'file', file_id: id } }),
  ],
  ['file', 'messages[0].content[0].file_id', (id) => said({ type: 'container_upload', file_id: id })],
  [
    'file',
    'messages[0].content[0].content[0].source.file_id',
    (id) =>
      said({
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'image', source: { type: 'file', file_id: id } }],
      }),
  ],
]

export const CHATS: readonly Row[] = [
  ['file', 'messages[0].content[0].file.file_id', (id) => said({ type: 'file', file: { file_id: id } })],
  ['audio', 'messages[0].audio', (id) => ({ messages: [{ role: 'assistant', audio: { id } }] })],
  [
    'cached_content',
    'extra_body.google.cached_content',
    (id) => ({ extra_body: { google: { cached_content: `cachedContents/${id}` } } }),
  ],
  ['cached_content', 'cachedContent', (id) => ({ cachedContent: id })],
  ['vector_store', 'vectorStoreIds', (id) => ({ vectorStoreIds: [id] })],
  ['file', 'FILE_ID', (id) => ({ FILE_ID: id })],
  ['thread', 'Thread', (id) => ({ Thread: id })],
  // A `session_id` of the chat itself is a label.
  ['session', 'session', (id) => ({ session: { id } })],
  ['session', 'extra_body.session_id', (id) => ({ extra_body: { session_id: id } })],
]

export const AGENTS: readonly Row[] = [
  ['agent', 'agent', (id) => ({ agent: id })],
  ['agent', 'agent', (id) => ({ agent: { type: 'agent', id, version: 1 } })],
  ['agent', 'multiagent.agents', (id) => ({ multiagent: { agents: [{ type: 'self' }, id] } })],
  ['agent', 'multiagent.agents[0].id', (id) => ({ multiagent: { agents: [{ type: 'agent', id }] } })],
  [
    'agent',
    'multiagent.subagents.predefined_agents',
    (id) => ({ multiagent: { subagents: { predefined_agents: [id] } } }),
  ],
  ['agent', 'callable_agents[0].id', (id) => ({ callable_agents: [{ type: 'agent', id }] })],
]

/** An answer of any of the three endpoints. */
export function answer(path: string): Body {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, input_tokens: 1, output_tokens: 1 }
  if (path.endsWith('/responses')) return responseBody([messageItem('yes')], { usage })
  if (path.endsWith('/messages'))
    return {
      id: 'msg',
      type: 'message',
      role: 'assistant',
      content: [{ type: 'text', text: 'yes' }],
      stop_reason: 'end_turn',
      usage,
    }
  return {
    id: 'c',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'yes' } }],
    usage,
  }
}

/** Two upstreams that answer what is asked. */
export async function twoUpstreams(t: TestContext): Promise<readonly [ScriptedUpstream, ScriptedUpstream]> {
  const upstreams = [
    await startUpstream((res, { path }) => answerJson(res, 200, answer(path))),
    await startUpstream((res, { path }) => answerJson(res, 200, answer(path))),
  ] as const
  for (const upstream of upstreams) t.after(() => upstream.close())
  return upstreams
}

/** Returns a store with what the accounts own: `own-0` and `own-1` are acme's, at the line of the number. */
export async function storeOf(kinds: readonly string[]): Promise<MemoryResourceStore> {
  const store = new MemoryResourceStore()
  const thing = (
    kind: string,
    id: string,
    account: string,
    line: string,
    expiresAt: number | null = null,
  ) => ({
    ...{ kind, id, account, line, expiresAt },
    ...{ key: null, model: null, tokens: 0, createdAt: 1 },
  })
  await store.remember(
    kinds.flatMap((kind) => [
      thing(kind, 'own-0', 'acme', 'line-0'),
      thing(kind, 'own-1', 'acme', 'line-1'),
      thing(kind, 'expired', 'acme', 'line-0', Date.now() - 1),
      thing(kind, 'foreign', 'globex', 'line-0'),
      thing('other_kind', 'of-other-kind', 'acme', 'line-0'),
    ]),
  )
  return store
}

/** Ids that are not the account's. */
export const NOT_OWN = ['foreign', 'unknown', 'expired', 'of-other-kind', 'OWN-0', 'own-0 ', 'x'.repeat(5000)]
