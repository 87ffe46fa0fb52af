import { FORMS } from './hostile-forms.ts'
import { CHAT } from './hostile-rows.ts'
import { TEXTS } from './hostile-texts.ts'
import { TRANSLATIONS } from './hostile-translations.ts'
import { VALUES } from './hostile-values.ts'

/** A request whose body is built to cost more than its bytes. */
export interface HostileRequest {
  readonly name: string
  readonly path: string
  readonly headers?: Record<string, string>
  body(): Buffer
}

/** The requests, each a table row of its own. */
export const HOSTILE_REQUESTS: readonly HostileRequest[] = [
  ...TEXTS,
  ...VALUES,
  ...FORMS,
  ...TRANSLATIONS,
].map(([name, body, path = CHAT, headers]) => ({
  name,
  path,
  ...(headers && { headers }),
  body: () => {
    const made = body()
    return typeof made === 'string' ? Buffer.from(made) : made
  },
}))
