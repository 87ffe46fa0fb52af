import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CleanUp } from './clean-up.ts'

/** A certificate and its key: the texts, and the files that hold them. */
export interface Certified {
  readonly cert: string
  readonly key: string
  readonly certFile: string
  readonly keyFile: string
}

/** A certificate authority that nobody else trusts. */
export interface OwnAuthority {
  readonly ca: string
  readonly caFile: string
  /** Certifies a server by its names and addresses, or a client, for two days or for as many, which may have passed. */
  certify(name: string, names?: readonly string[], days?: number): Certified
}

/** Makes an authority in a folder that is removed at the end. */
export function ownAuthority(cleanUp: CleanUp): OwnAuthority {
  const folder = mkdtempSync(join(tmpdir(), 'authority-'))
  cleanUp.after(() => rmSync(folder, { recursive: true }))
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'pipe' })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
    '-days',
    '2',
    '-subj',
    '/CN=Own',
  )
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    caFile: at('ca.pem'),
    certify(name, names = [], days = 2) {
      const [keyFile, request, certFile, extra] = ['key', 'csr', 'pem', 'ext'].map((end) =>
        at(`${name}.${end}`),
      ) as [string, string, string, string]
      const alternatives = names.map((each) => `${/^[\d.]+$/.test(each) ? 'IP' : 'DNS'}:${each}`)
      writeFileSync(extra, alternatives.length > 0 ? `subjectAltName=${alternatives.join(',')}\n` : '\n')
      openssl('req', ...newKey, '-keyout', keyFile, '-out', request, '-subj', `/CN=${name}`)
      const by = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-CAcreateserial']
      openssl('x509', '-req', '-in', request, ...by, '-out', certFile, '-days', `${days}`, '-extfile', extra)
      return { cert: readFileSync(certFile, 'utf8'), key: readFileSync(keyFile, 'utf8'), certFile, keyFile }
    },
  }
}
