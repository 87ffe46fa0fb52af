import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { collectionOf } from '../../../../lib/core/config/pass-through-path.ts'
import { type PathResource, resourceOfPath } from '../../../../lib/middleware/forward/owned/resource-path.ts'

/** The collections of OpenAI, Anthropic and Google. */
const KNOWN: Readonly<Record<string, string>> = {
  agents: 'agent',
  assistants: 'assistant',
  'audio/voice_consents': 'voice_consent',
  'audio/voices': 'voice',
  batches: 'batch',
  cachedContents: 'cached_content',
  'chat/completions': 'chat_completion',
  'chatkit/threads': 'chatkit_thread',
  containers: 'container',
  conversations: 'conversation',
  deployment_runs: 'deployment_run',
  deployments: 'deployment',
  dreams: 'dream',
  environments: 'environment',
  evals: 'eval',
  files: 'file',
  'fine_tuning/jobs': 'fine_tuning_job',
  memory_stores: 'memory_store',
  'messages/batches': 'message_batch',
  'realtime/calls': 'call',
  sessions: 'session',
  skills: 'skill',
  threads: 'thread',
  tunnels: 'tunnel',
  uploads: 'upload',
  user_profiles: 'user_profile',
  vaults: 'vault',
  vector_stores: 'vector_store',
  webhook_endpoints: 'webhook_endpoint',
}

describe('the resource that a path names', () => {
  for (const [collection, kind] of Object.entries(KNOWN))
    it(`is a ${kind} below /${collection}, in whatever letters, and nothing beside it`, () => {
      const isOpen = collection === 'audio/voices'
      const own = { kind, collection, isOpen }
      const list = { ...own, id: undefined, whole: true }
      const resource = { ...own, id: 'a', whole: true }
      const rows: [path: string, named: PathResource | undefined][] = [
        ['', list],
        ['/', list],
        ['?limit=1', list],
        ['/?after=/x/y', list],
        ['/a', resource],
        ['/a/', resource],
        ['/a?b=/c', resource],
        ['/a?b\n/c', resource],
        ['/a%20b', { ...resource, id: 'a b' }],
        ['/A;v=1', { ...resource, id: 'A;v=1' }],
        ['/a/content', { ...resource, whole: false }],
        ['/a/b/c/d', { ...resource, whole: false }],
        [';v=1/a', resource],
        ['%20/a', resource],
        ['x/a', undefined],
        ['-a', undefined],
      ]
      for (const [rest, named] of rows) {
        assert.deepEqual(resourceOfPath(`/${collection}${rest}`), named, rest)
        const loud = `/${collection.toUpperCase()}${rest}`
        assert.deepEqual(resourceOfPath(loud), named, loud)
      }
    })

  it('is nothing elsewhere', () => {
    for (const path of [
      '/',
      '/models',
      '/models/files',
      '/audio',
      '/audio/speech',
      '/audio/files/a',
      '/fine_tuning',
      '/fine_tuning/alpha/jobs',
      '/chat',
      '/x/y/z/files',
      '/file',
      '/toString',
    ])
      assert.equal(resourceOfPath(path), undefined, path)
  })

  it('is no id where the segment makes something', () => {
    const made = { kind: 'thread', collection: 'threads', id: undefined, whole: true, isOpen: false }
    assert.deepEqual(resourceOfPath('/threads/runs'), made)
    assert.deepEqual(resourceOfPath('/threads/RUNS?stream=true'), made)
    assert.deepEqual(resourceOfPath('/threads/runs/run_1'), made)
    assert.equal(resourceOfPath('/threads/run')?.id, 'run')
    assert.equal(resourceOfPath('/files/runs')?.id, 'runs')
    assert.equal(resourceOfPath('/chatkit/threads/runs')?.id, 'runs')
  })

  it('cannot have empty segments, which upstreams may drop', () => {
    for (const path of ['//files', '/files//a', '/files/a//', '//', '/models//x', '/files/a//content'])
      assert.throws(() => resourceOfPath(path), { code: 'not_found' }, path)
  })
})

describe('a collection that a rule declares', () => {
  it('is the literal begin of its path', () => {
    const rows: [rule: string, collection: string | undefined][] = [
      ['/v1/voices', 'voices'],
      ['/v1/voices/:id', 'voices'],
      ['/v1/voices/*rest', 'voices'],
      ['/v1/voices/:id/clips/:clip', 'voices'],
      ['/api/v3/contents/assets', 'contents/assets'],
      ['/v1/a/v1/b', 'a/v1/b'],
      ['/x/v1/b', 'b'],
      ['/v1/:kind', undefined],
      ['/v1/*rest', undefined],
      ['/v1/:kind/voices', undefined],
      ['/v1/a/b/c/d', undefined],
      ['/v1/', undefined],
      ['/voices', undefined],
    ]
    for (const [rule, collection] of rows) assert.equal(collectionOf(rule), collection, rule)
  })

  it('is known of one to three segments, over those that are known', () => {
    for (const path of ['Voices', 'a/voices', 'a/b/Voices']) {
      const declared = { path, kind: 'voice' }
      const named = { kind: 'voice', collection: path, isOpen: false }
      assert.deepEqual(resourceOfPath(`/${path}`, declared), { ...named, id: undefined, whole: true })
      assert.deepEqual(resourceOfPath(`/${path.toLowerCase()}/1`, declared), {
        ...named,
        id: '1',
        whole: true,
      })
      assert.equal(resourceOfPath('/files/1', declared)?.kind, 'file')
      assert.equal(resourceOfPath('/other/1', declared), undefined)
    }
    assert.equal(resourceOfPath('/a/b/c/d', { path: 'a/b/c/d', kind: 'x' }), undefined)
    const files = resourceOfPath('/files/1', { path: 'files', kind: 'document' })
    assert.equal(files?.kind, 'document')
  })

  it('closes a list that is the line’s own else', () => {
    const declared = { path: 'audio/voices', kind: 'voice' }
    assert.equal(resourceOfPath('/audio/voices')?.isOpen, true)
    assert.equal(resourceOfPath('/audio/voices', declared)?.isOpen, false)
    assert.equal(resourceOfPath('/audio/voices', { path: 'voices', kind: 'voice' })?.isOpen, true)
  })
})
