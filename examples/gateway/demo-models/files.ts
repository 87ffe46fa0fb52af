import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault } from './faults.ts'
import { fileIn, readForm } from './multipart.ts'
import { sendJson } from './send-json.ts'
import { newId } from './text-endpoint.ts'

/** The limit for all files together; the oldest are deleted. */
const MAX_BYTES = 128 * 1024 * 1024
const PATH = /^\/v1\/files(?:\/([^/]+)(\/content)?)?$/

interface StoredFile {
  readonly id: string
  readonly object: 'file'
  readonly bytes: number
  readonly created_at: number
  readonly filename: string
  readonly purpose: string
  readonly status: 'processed'
}

/** Stores the files of a demo model server in memory. */
export class DemoFiles {
  readonly #files = new Map<string, { readonly file: StoredFile; readonly content: Buffer }>()
  readonly #limitBytes: number
  #bytes = 0

  /** @param limitBytes most bytes of one upload. */
  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes
  }

  /** Answers a request for files; returns false for any other request. */
  async serve(req: IncomingMessage, res: ServerResponse, path: string): Promise<boolean> {
    const [matched, id, content] = PATH.exec(path) ?? []
    if (matched === undefined) return false
    const asked = `${req.method} ${id === undefined ? 'all' : content === undefined ? 'one' : 'content'}`
    switch (asked) {
      case 'POST all':
        sendJson(res, await this.#upload(req))
        return true
      case 'GET all':
        sendJson(res, { object: 'list', data: this.#list(), has_more: false })
        return true
      case 'GET one':
        sendJson(res, this.#find(id).file)
        return true
      case 'DELETE one':
        sendJson(res, { id: this.#remove(id), object: 'file', deleted: true })
        return true
      case 'GET content':
      case 'HEAD content':
        this.#sendContent(req, res, id)
        return true
      default:
        return false
    }
  }

  async #upload(req: IncomingMessage): Promise<StoredFile> {
    const form = await readForm(req, this.#limitBytes)
    const upload = fileIn(form)
    const content = Buffer.from(await upload.arrayBuffer())
    const file: StoredFile = {
      id: newId('file-demo-'),
      object: 'file',
      bytes: content.length,
      created_at: Math.floor(Date.now() / 1000),
      filename: upload.name,
      purpose: String(form.get('purpose') ?? 'user_data'),
      status: 'processed',
    }
    this.#files.set(file.id, { file, content })
    this.#bytes += content.length
    for (const oldest of this.#files.keys()) {
      if (this.#bytes <= MAX_BYTES) break
      this.#remove(oldest)
    }
    return file
  }

  #list(): StoredFile[] {
    return [...this.#files.values()].map(({ file }) => file).reverse()
  }

  #find(id = '') {
    const found = this.#files.get(id)
    if (!found) throw new Fault('unknown_path', { message: `There is no file ${id}.` })
    return found
  }

  #remove(id: string | undefined): string {
    const { file } = this.#find(id)
    this.#files.delete(file.id)
    this.#bytes -= file.bytes
    return file.id
  }

  /** Sends the whole content, or the requested range. */
  #sendContent(req: IncomingMessage, res: ServerResponse, id: string | undefined): void {
    const { file, content } = this.#find(id)
    const headers = {
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(file.filename)}`,
      'accept-ranges': 'bytes',
      etag: `"${file.id}"`,
    }
    if (req.headers['if-none-match'] === headers.etag) return void res.writeHead(304, headers).end()
    const range = /^bytes=(\d+)-(\d*)$/.exec(req.headers.range ?? '')
    const from = Number(range?.[1] ?? 0)
    const to = Math.min(content.length - 1, range?.[2] ? Number(range[2]) : content.length - 1)
    if (range && from > to) {
      res.writeHead(416, { 'content-range': `bytes */${content.length}` }).end()
      return
    }
    const part = content.subarray(from, to + 1)
    res.writeHead(range ? 206 : 200, {
      ...headers,
      'content-length': part.length,
      ...(range && { 'content-range': `bytes ${from}-${to}/${content.length}` }),
    })
    res.end(req.method === 'HEAD' ? undefined : part)
  }
}
