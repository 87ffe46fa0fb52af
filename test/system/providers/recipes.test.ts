import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import { type AssembledGateway, assembledGateway } from '../../support/assembled-gateway.ts'
import { type CleanUp, cleaningUp } from '../../support/clean-up.ts'
import { setEnvironment } from '../../support/environment.ts'
import { AWS_ACCOUNT } from './bedrock-twin.ts'
import { TWIN_KEY } from './openai-twins.ts'
import { startTwins, type TwinWorld } from './twin-server.ts'
import { twinsWith } from './twins.ts'

const FOLDER = new URL('../../../examples/providers/', import.meta.url)
const RECIPES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'))
/** Servers on this machine, which no proxy leads to. */
const LOCAL = new Set(['ollama.json', 'vllm.json'])
/** The recipes whose secret the tests can replace by a wrong one: Ollama has none, and Google's is a file. */
const KEYED = RECIPES.filter((name) => name !== 'ollama.json' && name !== 'vertex.json')

interface Recipe {
  readonly models: readonly { readonly id: string; readonly kind: string }[]
  readonly lines: readonly { readonly protocol: string; readonly models: Readonly<Record<string, string>> }[]
}

const folder = mkdtempSync(join(tmpdir(), 'recipes-'))
const cleanUp = cleaningUp()
cleanUp.after(() => rmSync(folder, { recursive: true }))

const account = (): { publicKey: string; file: string } => {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const file = join(folder, 'service-account.json')
  const text = {
    type: 'service_account',
    project_id: 'twin',
    private_key_id: 'k1',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    client_email: 'twin@twin.iam.gserviceaccount.com',
    client_id: '1',
    token_uri: 'https://oauth2.googleapis.com/token',
  }
  writeFileSync(file, JSON.stringify(text))
  return { publicKey: publicKey.export({ type: 'spki', format: 'pem' }) as string, file }
}

let twins: TwinWorld
const google = account()
before(async () => {
  twins = await startTwins(cleanUp, twinsWith(google.publicKey))
})

const names = (text: string): string[] => [...text.matchAll(/"env:(\w+)"/g)].map(([, name = '']) => name)

/** The gateway on a recipe as it stands in the repository, but for what is meant to be filled in. */
function served(t: CleanUp, name: string, key: string): Promise<AssembledGateway> {
  const text = readFileSync(new URL(name, FOLDER), 'utf8')
    .replaceAll('file:service-account.json', `file:${google.file}`)
    .replaceAll(/localhost:\d+/g, `localhost:${twins.port}`)
  const recipe = JSON.parse(text) as Recipe
  const lines = recipe.lines.map((line) => (LOCAL.has(name) ? line : { ...line, tls: { ca: twins.caFile } }))
  const env = {
    ...Object.fromEntries(names(text).map((variable) => [variable, key])),
    AZURE_CLIENT_ID: 'twin-client',
    HTTPS_PROXY: twins.proxy.url,
    NO_PROXY: 'localhost',
  }
  const wrong = key !== TWIN_KEY
  setEnvironment(t, {
    AWS_ACCESS_KEY_ID: AWS_ACCOUNT.accessKeyId,
    AWS_SECRET_ACCESS_KEY: wrong ? 'wrong' : AWS_ACCOUNT.secretAccessKey,
    AWS_SESSION_TOKEN: AWS_ACCOUNT.sessionToken,
  })
  return assembledGateway(t, { ...recipe, lines }, { env })
}

const CHAT = { messages: [{ role: 'user', content: 'Say hello' }], max_tokens: 50 }
/** Members that clients send by default, and that a provider may not know. */
const ALONG = { user: 'u-1', store: false, metadata: { a: 'b' } }

/** The calls that fit a kind of model: path, body, and the usage to be metered. */
function callsFor(name: string, kind: string): [path: string, body: object, usage: object][] {
  const chat = { input_tokens: 7, output_tokens: 3, source: 'measured' }
  const input = { input_tokens: 7, source: 'measured' }
  // Cohere counts searches, and reports no tokens.
  const reranked = name === 'cohere.json' ? { search_units: 1 } : input
  if (kind === 'embedding') return [['/v1/embeddings', { input: 'words' }, input]]
  if (kind === 'rerank') return [['/v1/rerank', { query: 'q', documents: ['a', 'b'] }, reranked]]
  return [
    ['/v1/chat/completions', { ...CHAT }, chat],
    ['/v1/chat/completions', { ...CHAT, stream: true, stream_options: { include_usage: true } }, chat],
    ['/v1/chat/completions', { ...CHAT, ...ALONG, stream: true }, chat],
    ['/v1/messages', { ...CHAT }, chat],
    ['/v1/messages', { ...CHAT, stream: true }, chat],
  ]
}

/** The text of an answer of any form. */
function said(text: string): string {
  const texts = [...text.matchAll(/"(?:content|text)":"((?:[^"\\]|\\.)*)"/g)].map(([, word = '']) => word)
  return texts.join('')
}

for (const name of RECIPES)
  describe(`the recipe ${name}`, () => {
    it('serves its models: answers, metered usage, call log', async (t) => {
      const gateway = await served(t, name, TWIN_KEY)
      const { models } = JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as Recipe
      for (const { id, kind } of models)
        for (const [path, body, usage] of callsFor(name, kind)) {
          const answer = await gateway.send(path, { model: id, ...body })
          const text = await answer.text()
          const entry = await gateway.entryOf(answer)
          const what = `${id} ${path} ${JSON.stringify(body)}: ${text} ${JSON.stringify(entry.routing)}`
          assert.equal(answer.status, 200, what)
          if (kind === 'chat') assert.equal(said(text), 'Hello', what)
          assert.deepEqual({ ...entry.usage, ...usage }, entry.usage, what)
          assert.deepEqual(
            entry.routing?.attempts.map(({ outcome, upstream_status }) => [outcome, upstream_status]),
            [['completed', 200]],
            what,
          )
          assert.doesNotMatch(text, /amazon-bedrock|twin-key/)
        }
    })

    if (KEYED.includes(name))
      it('has an attempt fail, and shows none of its secrets, with a wrong key', async (t) => {
        const gateway = await served(t, name, 'wrong-key-0123')
        const { models } = JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as Recipe
        for (const { id, kind } of models) {
          const [[path, body] = assert.fail()] = callsFor(name, kind)
          const answer = await gateway.send(path, { model: id, ...body })
          const text = await answer.text()
          const entry = await gateway.entryOf(answer)
          assert.equal(answer.status, 502, `${id}: ${text}`)
          assert.equal(entry.routing?.attempts[0]?.outcome, 'upstream_error')
          assert.doesNotMatch(JSON.stringify([text, entry, gateway.logged]), /wrong-key|twin-s|entra-token/)
        }
      })
  })

it('each recipe goes through the proxy to its own host', () => {
  const hosts = new Set(twins.proxy.asked.map(({ to }) => to))
  for (const host of Object.keys(twinsWith('')))
    if (host !== 'localhost') assert.ok(hosts.has(`${host}:443`), host)
})
