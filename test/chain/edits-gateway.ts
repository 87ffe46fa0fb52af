import { toFile } from 'openai'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import type { CleanUp } from '../support/clean-up.ts'
import { imageAnswer } from '../support/endpoints.ts'
import { KEY } from '../support/gateway.ts'
import {
  answerJson,
  type ReceivedRequest,
  type ScriptedUpstream,
  startUpstream,
  type UpstreamScript,
} from '../support/scripted-upstream.ts'

export const OTHER_KEY = 'sk-other'
/** Of an account that can pay for one image. */
export const POOR_KEY = 'sk-poor'
export const PATH = '/v1/images/edits'
export const LIMIT_BYTES = 256 * 1024
/** Bytes that a careless writer of forms changes or ends a part at. */
export const CAT = Buffer.from('\x89PNG\r\n\x1a\n\0\xff\r\n--form-\r\n\r\n--', 'latin1')
export const IMAGE = Buffer.alloc(1024, 7).toString('base64')

/** Answers with as many images as a form asks for. */
export const answerEdit: UpstreamScript = (res, { raw }) =>
  answerJson(
    res,
    200,
    imageAnswer(
      Array.from({ length: raw.includes('"n"\r\n\r\n2\r\n') ? 2 : 1 }, () => ({ b64_json: IMAGE })),
    ),
  )

/** The assembled gateway with models that edit images. "pictures" is on both upstreams, first on `upstream`. */
export interface EditsGateway {
  readonly upstream: ScriptedUpstream
  readonly second: ScriptedUpstream
  readonly served: AssembledGateway
  post(body: FormData | string, headers?: Record<string, string>, key?: string): Promise<Response>
  /** The amount that an account has spent. */
  spent(key?: string): Promise<number>
}

export async function editsGateway(cleanUp: CleanUp): Promise<EditsGateway> {
  const [upstream, second] = await Promise.all([startUpstream(answerEdit), startUpstream(answerEdit)])
  cleanUp.after(() => upstream.close())
  cleanUp.after(() => second.close())
  const line = { provider: 'p', protocol: 'openai', endpoints: ['images/edits'] }
  const [first, other] = [upstream, second].map(({ url }) => ({ ...line, baseUrl: `${url}/v1` }))
  const served = await assembledGateway(cleanUp, {
    accounts: ['acme', 'other', 'poor'].map((id) => ({ id, balance: id === 'poor' ? '0.04' : '100' })),
    keys: [
      { id: 'key_acme', account: 'acme', secret: KEY },
      { id: 'key_other', account: 'other', secret: OTHER_KEY },
      { id: 'key_poor', account: 'poor', secret: POOR_KEY },
    ],
    models: [
      { id: 'pictures', kind: 'image', price: { perImage: '0.04' } },
      { id: 'still', kind: 'image', features: [] },
      { id: 'adorned', kind: 'image' },
    ],
    lines: [
      { ...first, id: 'first', priority: 0, models: { pictures: 'up-1', still: 'up-s' } },
      { ...other, id: 'second', priority: 1, models: { pictures: 'up-2' } },
      { ...other, id: 'adorned', models: { adorned: 'up-a' }, body: { moderation: 'low', user: null } },
    ],
    bodyLimitBytes: LIMIT_BYTES,
  })
  return {
    upstream,
    second,
    served,
    post: (body, headers = {}, key = KEY) =>
      fetch(served.url + PATH, {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${key}`, ...headers },
      }),
    async spent(key = KEY) {
      const headers = { authorization: `Bearer ${key}` }
      const account = await (await fetch(`${served.url}/v1/account`, { headers })).json()
      return Number((account as { spent: string }).spent)
    },
  }
}

export const png = (bytes: Buffer, name: string) => toFile(bytes, name, { type: 'image/png' })

export const last = ({ requests }: ScriptedUpstream) => requests.at(-1) as ReceivedRequest

/** The form that an upstream got last. */
export async function lastForm(upstream: ScriptedUpstream): Promise<FormData> {
  const { raw, headers } = last(upstream)
  const type = headers['content-type'] ?? ''
  return new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
}

/** The parts of a form, files with their bytes. */
export async function partsOf(form: FormData): Promise<unknown[]> {
  return Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === 'string'
        ? [name, value]
        : [name, value.name, value.type, Buffer.from(await value.arrayBuffer()).toString('hex')],
    ),
  )
}

export function formWith(members: Record<string, string | Blob | readonly Blob[]>): FormData {
  const made = new FormData()
  for (const [name, value] of Object.entries(members))
    for (const each of [value].flat()) made.append(name, each as string)
  return made
}

/** The form of a sound request. */
export const catForm = (members: Record<string, string> = {}, bytes: Uint8Array<ArrayBuffer> = CAT) =>
  formWith({ model: 'pictures', prompt: 'a hat', image: new File([bytes], 'cat.png'), ...members })
