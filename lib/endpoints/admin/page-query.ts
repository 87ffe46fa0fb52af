import { z } from 'zod'
import { pageMembers } from '../../core/json-api/index.ts'

/** The query of lists without filters. */
export const pageQuery = z.strictObject(pageMembers())
