import { GatewayError } from '../../../core/errors/index.ts'

/** The kinds of bodies, which are read in different ways. */
export type BodyType =
  /** JSON of any kind. */
  | { readonly kind: 'json' }
  /** `application/x-www-form-urlencoded`. */
  | { readonly kind: 'encoded' }
  | { readonly kind: 'multipart'; readonly boundary: string }
  /** Any other type. */
  | { readonly kind: 'other' }
  /** No type, which some upstreams take for a form, and others for JSON. */
  | { readonly kind: 'none' }

/** In a longer one, a run of spaces would take long to check. */
const MAX_LENGTH = 400
const TOKEN = "[\\w!#$%&'*+.^`|~-]+"
const PARAMETER = `(${TOKEN})=(${TOKEN}|"[^"\\\\]*")`
const MEDIA_TYPE = new RegExp(`^(${TOKEN}/${TOKEN})((?:[ \\t]*;[ \\t]*(?:${PARAMETER})?)*)[ \\t]*$`)
const PARAMETERS = new RegExp(PARAMETER, 'g')
/**
 * The type of a form whose boundary everybody reads alike. By a second boundary, an escape, a comment or a continuation, an
 * upstream could find other parts than are checked here.
 */
const FORM =
  /^multipart\/form-data[ \t]*(?:;[ \t]*charset=utf-?8[ \t]*)?;[ \t]*boundary=(?:"([\w'()+,./:=?-]{1,200})"|([\w'+./:=?-]{1,200}))[ \t]*(?:;[ \t]*charset=utf-?8[ \t]*)?;?[ \t]*$/i
/** Types that some upstreams take for a form. */
const LIKE_FORM = /multipart|form-?data|url-?encoded/i
const UTF_8 = /^"?(?:utf-?8|us-ascii)"?$/i

/**
 * Reads the `Content-Type` of a body.
 *
 * @throws {GatewayError} `invalid_request` for one that upstreams could read in different ways.
 */
export function readContentType(header: string | undefined): BodyType {
  if (header === undefined || header.trim() === '') return { kind: 'none' }
  if (header.length > MAX_LENGTH) throw invalid(UNREADABLE)
  if (/^multipart\/form-data/i.test(header)) {
    const [, quoted, plain] = FORM.exec(header) ?? []
    const boundary = quoted ?? plain
    if (boundary === undefined) throw invalid(NO_BOUNDARY)
    return { kind: 'multipart', boundary }
  }
  const [, type, parameters = ''] = MEDIA_TYPE.exec(header) ?? []
  if (type === undefined) throw invalid(UNREADABLE)
  for (const [, name = '', value = ''] of parameters.matchAll(PARAMETERS)) {
    if (/^charset/i.test(name) && !UTF_8.test(value))
      throw invalid('The body must be UTF-8. Send no charset.')
    if (/^boundary/i.test(name) || LIKE_FORM.test(`${name} ${value}`)) throw invalid(UNREADABLE)
  }
  if (/^application\/x-www-form-urlencoded$/i.test(type)) return { kind: 'encoded' }
  if (LIKE_FORM.test(type)) throw invalid(UNREADABLE)
  return { kind: /json|javascript/i.test(header) ? 'json' : 'other' }
}

const UNREADABLE =
  'The Content-Type cannot be read. Send application/json, multipart/form-data or application/x-www-form-urlencoded.'
const NO_BOUNDARY =
  'The boundary of the form cannot be read. Send "Content-Type: multipart/form-data; boundary=…", with no other parameter.'

function invalid(message: string): GatewayError {
  return new GatewayError('invalid_request', { param: 'Content-Type', message })
}
