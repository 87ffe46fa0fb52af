import { type Call, callOf } from '../../../lib/core/call/index.ts'
import { type AuthenticateOptions, authenticate } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { type AppServer, type RecordingLogger, recordingLogger, serveApp } from '../../support/app-server.ts'

/** A guarded handler, and whether it ran. */
export interface Admission extends AppServer {
  /** How often the handler behind the guard ran. */
  readonly admitted: number
  readonly calls: Call[]
  readonly logger: RecordingLogger
  /** The result of a request with these headers: an error code or type with its status, or the admitted key. */
  ask(headers?: Record<string, string>, path?: string): Promise<Asked>
}

export interface Asked {
  readonly status: number
  /** `error.code`, or on the Anthropic-style protocol `error.type`; undefined for an admitted request. */
  readonly error: string | undefined
  readonly key: string | undefined
  readonly text: string
}

/** Mounts `authenticate` in front of a handler that must only run for who may pass. */
export async function guard(options: AuthenticateOptions, trustProxy: unknown = false): Promise<Admission> {
  let admitted = 0
  const calls: Call[] = []
  const logger = recordingLogger()
  const app = await serveApp((app) => {
    app.set('trust proxy', trustProxy)
    app.use(beginCall({ logger, onBegin: (call) => void calls.push(call) }), authenticate(options))
    app.all('/{*any}', (req, res) => {
      admitted++
      res.json({ key: callOf(req).principal?.keyId })
    })
    app.use(errorEnvelope())
  })
  return {
    ...app,
    get admitted() {
      return admitted
    },
    calls,
    logger,
    async ask(headers = {}, path = '/v1/chat/completions') {
      const res = await fetch(app.url + path, { method: 'POST', headers })
      const text = await res.text()
      const body = JSON.parse(text)
      return { status: res.status, error: body.error?.code ?? body.error?.type, key: body.key, text }
    },
  }
}

export const bearer = (key: string) => ({ authorization: `Bearer ${key}` })
